// What jobs can say of DeepSpeed beside a ds_config, and in place of one. What needs the file, the
// model or the world to be understood is read by load/deepspeed.h.
#include <fmt/format.h>

#include "frameworks/deepspeed/auto_resolver.h"
#include "frameworks/deepspeed/option_table.h"
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kFunctions{named("torch", false), named("deepspeed", true)};

constexpr auto kShortForm = &Framework::deepspeed;

/// What holds where the option is left open, of one that code of its own reads.
template <auto Fallback>
constexpr OptionAccess<Framework> left_open() {
  return {.get = [](const Framework&) { return detail::value_of(Fallback); }, .set = nullptr};
}

OptionValue version_of(const Framework& f) {
  const DeepSpeedVersion& v = f.deepspeed.version;
  return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
}

constexpr std::array kDeepSpeedOptions{
    special<Framework>({.key = "zero_stage",
                        .flag = "--zero-stage",
                        .also = "--zero --stage --deepspeed-zero-stage",
                        .switches = "--zero1=1 --zero2=2 --zero3=3",
                        .help = "ZeRO stage, 0 to 3",
                        .label = "ZeRO stage",
                        .kind = OptionKind::integer,
                        .integers = {0, 3}},
                       left_open<kStageOfShortForm>()),
    special<Framework>({.key = "ds_config",
                        .flag = "--ds-config",
                        .also = "--deepspeed --deepspeed-config --deepspeed-config-file "
                                "--dsconfig",
                        .help = "the path of a ds_config.json",
                        .doc = "a path (relative to the job) or the object; excludes `zero_stage`",
                        .default_text = "none"}),
    special<Framework>({.key = "version",
                        .flag = "--deepspeed-version",
                        .help = "for example 0.19.6",
                        .doc = "the version whose defaults and behaviour count"},
                       {.get = version_of}),
    special<Framework>({.key = "auto",
                        .flag = "--auto",
                        .help = "who resolves \"auto\"",
                        .kind = OptionKind::choice,
                        .choices = kAutoResolvers},
                       left_open<AutoResolver::hf_trainer>()),
    special<Framework>({.key = "offload_optimizer",
                        .flag = "--offload-optimizer",
                        .also = "--offload --offload-optimizer-device",
                        .switches = "--cpu-offload-optimizer=cpu",
                        .help = "where optimizer states are kept and updated",
                        .label = "Offload",
                        .kind = OptionKind::choice,
                        .choices = kOffloadDevices},
                       left_open<OffloadDevice::none>()),
    special<Framework>({.key = "offload_param",
                        .flag = "--offload-param",
                        .also = "--offload-params --offload-param-device",
                        .help = "where parameters are kept",
                        .label = "Weights are kept",
                        .kind = OptionKind::choice,
                        .choices = kOffloadDevices},
                       left_open<OffloadDevice::none>()),
    option<kShortForm, &DeepSpeedOptions::activation_checkpointing,
           &DeepSpeedCheckpointing::called>(
        {.key = "checkpoint_function",
         .flag = "--checkpoint-function",
         .help = "which function checkpoints blocks",
         .doc = "which function checkpoints blocks; with deepspeed the ds_config's "
                "`activation_checkpointing` counts "
                "([parallelism.md](../explanation/parallelism.md#saved-inputs-in-parts))",
         .choices = kFunctions}),
    option<kShortForm, &DeepSpeedOptions::model_dtype>(
        {.key = "model_dtype",
         .flag = "--model-dtype",
         .help = "what the program casts the model to after zero.Init, with offload_param",
         .doc = "what the program casts the model to (`model.to`) after `zero.Init`: with "
                "`offload_param` stage 3 keeps parameters in it and computes in it "
                "([memory.md](../explanation/memory.md#offload))",
         .default_text = "`fp32` with hf_trainer and trl, else the precision's",
         .kind = OptionKind::dtype,
         .choices = kStateTypes}),
    special<Framework>(
        {.key = "moe",
         .help = "layers of deepspeed.moe.layer.MoE in place of the model's own",
         .doc = "an object: layers of `deepspeed.moe.layer.MoE` in place of the "
                "model's sparse ones ([parallelism.md](../explanation/parallelism.md#experts))",
         .default_text = "none",
         .kind = OptionKind::block}),
    special<Framework>(
        {.key = "kernel_inject",
         .help = "DeepSpeed-Inference over all GPUs",
         .doc = "DeepSpeed-Inference over all GPUs ([inference.md](../explanation/inference.md))",
         .kind = OptionKind::boolean},
        left_open<false>()),
    special<Framework>({.key = "max_out_tokens",
                        .help = "tokens that its workspace is for, prompt included",
                        .kind = OptionKind::integer,
                        .integers = {1, std::int64_t{1} << 31}},
                       left_open<KernelInjection{}.max_out_tokens>()),
};

constexpr std::array kMoe{
    option<&DeepSpeedMoe::capacity_factor>(
        {.key = "capacity_factor",
         .help = "rows that an expert takes of each rank, over an even share",
         .numbers = {1e-3, 1e6}}),
    option<&DeepSpeedMoe::min_capacity>({.key = "min_capacity",
                                         .help = "and at least so many",
                                         .integers = {0, std::int64_t{1} << 31}}),
    option<&DeepSpeedMoe::drop_tokens>(
        {.key = "drop_tokens", .help = "false: as many rows as the fullest expert is sent"}),
};

}  // namespace

constinit const OptionTable<Framework> kDeepSpeedOptionTable{"framework", "DeepSpeed",
                                                             kDeepSpeedOptions};

constinit const OptionTable<DeepSpeedMoe> kDeepSpeedMoeTable{"framework.moe", "DeepSpeed", kMoe};

}  // namespace shardplan
