#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "load/ds_config/rules.h"
#include "load/ds_config/version.h"
#include "parallel/sharding.h"

namespace shardplan {
namespace {

std::string key_of(std::string_view name) {
  return fmt::format("zero_optimization.{}", name);
}

std::string device_of(const DsValues& values, std::string_view block) {
  return values.maybe_text(key_of(fmt::format("{}.device", block))).value_or("none");
}

/// zero/stage_1_and_2.py and zero/stage3.py __init__; runtime/config.py _do_error_check.
void check_reduction(const DsValues& values, DsFindings& findings) {
  const int stage = values.stage();
  if (stage >= 2 && values.flag(key_of("reduce_scatter"))) {
    if (values.number("gradient_predivide_factor") != 1.0)
      findings.error("ds.predivide-with-reduce-scatter"_rule, "gradient_predivide_factor",
                     say("must be 1 with reduce_scatter at stage {}", stage), "1.0");
    if (values.flag("prescale_gradients"))
      findings.error("ds.prescale-with-reduce-scatter"_rule, "prescale_gradients",
                     say("must be off with reduce_scatter at stage {}", stage), "false");
  }
  if (values.text("gradient_allreduce_op") == "sum") {
    const auto refuse = [&](const char* what) {
      findings.error("ds.sum-reduction"_rule, "gradient_allreduce_op",
                     say("sum does not work with {}", what), "mean");
    };
    if (stage == 3) refuse("ZeRO stage 3");
    if (values.given(key_of("zenflow")) != nullptr) refuse("ZenFlow");
    if (values.flag("compile.deepcompile")) refuse("DeepCompile");
  }
  if ((stage == 1 || stage == 2) && values.integer(key_of("allgather_bucket_size")) % 2 != 0)
    findings.error("ds.odd-allgather-bucket"_rule, key_of("allgather_bucket_size"),
                   say("{} is odd", values.integer(key_of("allgather_bucket_size"))),
                   "a multiple of 2");
  if (stage == 3 && values.flag(key_of("zero_quantized_gradients")) &&
      !values.flag(key_of("reduce_scatter")))
    findings.error("ds.quantized-gradients-reduction"_rule, key_of("zero_quantized_gradients"),
                   "quantized gradients need reduce_scatter",
                   "zero_optimization.reduce_scatter true");
}

/// zero/config.py offload_ratio_check; swap_tensor/*; zero/partition_parameters.py.
void check_offload(const DsValues& values, DsFindings& findings) {
  const int stage = values.stage();
  const std::string optimizer = device_of(values, "offload_optimizer");
  const double ratio = values.number(key_of("offload_optimizer.ratio"));
  if (ratio < 1.0 && stage != 3)
    findings.error("ds.partial-offload-stage"_rule, key_of("offload_optimizer.ratio"),
                   say("{} at stage {}: a part is offloaded only at stage 3", ratio, stage),
                   "1.0, or stage 3");
  if (optimizer == "nvme" && (stage == 1 || stage == 2))
    findings.warning("ds.nvme-below-stage-3"_rule, key_of("offload_optimizer.device"),
                     say("stage {} keeps the states in host memory, not on NVMe", stage),
                     "cpu, or stage 3");
  for (const std::string block : {"offload_optimizer", "offload_param"})
    if (stage == 3 && device_of(values, block) == "nvme" &&
        !values.maybe_text(key_of(block + ".nvme_path")))
      findings.error("ds.nvme-path-missing"_rule, key_of(block + ".nvme_path"),
                     "offload to nvme needs a path", "a folder on the NVMe device");
  constexpr std::int64_t kAdamTensors = 4;  // parameter, gradient, two moments
  const std::int64_t buffers = values.integer(key_of("offload_optimizer.buffer_count"));
  if (stage == 3 && optimizer == "nvme" && buffers < kAdamTensors)
    findings.warning("ds.nvme-buffer-count"_rule, key_of("offload_optimizer.buffer_count"),
                     say("{} buffers do not hold the {} tensors of Adam", buffers, kAdamTensors),
                     "at least 4");
}

/// zero/mics.py, and since 0.19.3 zero/stage3.py _get_param_partition_group, which names the
/// parameters' own group: under MiCS still the world.
void check_mics(const DsValues& values, std::int64_t shard, std::int64_t world,
                DsFindings& findings) {
  constexpr DeepSpeedVersion kGroupsByParameter{0, 19, 3};
  if (world % shard != 0) {
    findings.error("ds.mics-ranks"_rule, key_of("mics_shard_size"),
                   say("{} does not divide the {} ranks", shard, world),
                   say("{}, or another divisor of {}", nearest_divisor(world, shard), world));
    return;
  }
  if (world == shard) return;
  if (device_of(values, "offload_optimizer") != "none")
    findings.error("ds.mics-offload"_rule, key_of("mics_shard_size"),
                   say("MiCS with {} replicas does not work with optimizer offload", world / shard),
                   "no offload_optimizer, or one shard group over all ranks");
  if (values.version() >= kGroupsByParameter)
    findings.warning(
        "ds.mics-copies"_rule, key_of("mics_shard_size"),
        say("with {} replicas, DeepSpeed {} scatters gradients over all {} ranks and not "
            "over the {} of a shard group",
            world / shard, to_string(values.version()), world, shard),
        "DeepSpeed 0.19.2, or one shard group over all ranks");
}

/// What MiCS' own gathers and reductions never ask for (zero/mics.py MiCS_Init, engine.py
/// _return_mics_optimizer).
void check_mics_alone(const DsValues& values, DsFindings& findings) {
  const auto warn = [&](const char* key) {
    findings.warning("ds.mics-ignores"_rule, key_of(key),
                     "has no use under MiCS, which gathers and reduces in its own way",
                     "one of the two");
  };
  if (values.integer(key_of("zero_hpz_partition_size")) > 1) warn("zero_hpz_partition_size");
  for (const char* key : {"zero_quantized_weights", "zero_quantized_gradients"})
    if (values.flag(key_of(key))) warn(key);
}

/// csrc/quantization/swizzled_quantize.cu reads gradients as fp16 whatever their type is.
void check_quantized_gradients(const DsValues& values, DsFindings& findings) {
  if (!values.flag(key_of("zero_quantized_gradients")) ||
      values.integer(key_of("mics_shard_size")) > 0)
    return;
  const auto sent = values.maybe_text("communication_data_type");
  const bool half = sent ? *sent == "fp16" : values.flag("fp16.enabled");
  if (!half)
    findings.warning("ds.quantized-gradients-type"_rule, key_of("zero_quantized_gradients"),
                     "the quantizer reads gradients as fp16, and these are not: their bits would "
                     "be taken for other numbers",
                     "fp16, or communication_data_type fp16");
}

/// utils/groups.py _create_zero_param_parallel_group; zero/partition_parameters.py
/// _partition_param_sec.
void check_shard_groups(const DsValues& values, const DsConfigContext& context,
                        DsFindings& findings) {
  if (values.stage() != 3) return;
  const std::int64_t secondary = values.integer(key_of("zero_hpz_partition_size"));
  const std::int64_t shard = values.integer(key_of("mics_shard_size"));
  if (secondary > 1 && device_of(values, "offload_param") == "nvme")
    findings.error("ds.hpz-nvme"_rule, key_of("zero_hpz_partition_size"),
                   "secondary shards are made where parameters are offloaded to, and PyTorch makes "
                   "no tensor on NVMe",
                   "1, or offload_param.device cpu");
  if (shard > 0) check_mics_alone(values, findings);
  check_quantized_gradients(values, findings);
  if (!context.world_size) return;
  const std::int64_t world = *context.world_size;
  if (secondary > 1 && world % std::min(secondary, world) != 0)
    findings.error("ds.hpz-ranks"_rule, key_of("zero_hpz_partition_size"),
                   say("{} does not divide the {} ranks", secondary, world),
                   say("{}, or another divisor of {}", nearest_divisor(world, secondary), world));
  if (shard > 0) check_mics(values, shard, world, findings);
}

/// compile/init_z3.py, engine.py compile.
void check_deepcompile(const DsValues& values, DsFindings& findings) {
  if (!values.flag("compile.deepcompile")) return;
  if (values.stage() == 0)
    findings.warning("ds.deepcompile-without-zero"_rule, "compile.deepcompile",
                     "falls back to torch.compile without ZeRO");
  const bool states = values.flag("compile.offload_opt_states");
  const bool parameters = values.flag("compile.offload_parameters");
  if (values.flag("compile.offload_activation") && (states || parameters))
    findings.error("ds.deepcompile-offloads"_rule, "compile.offload_activation",
                   "excludes offload_opt_states and offload_parameters", "one of the three");
  if (states && parameters)
    findings.error("ds.deepcompile-two-offloads"_rule, "compile.offload_opt_states",
                   "excludes offload_parameters", "one of the two");
  if (states && device_of(values, "offload_optimizer") != "none")
    findings.error("ds.deepcompile-offload-optimizer"_rule, "compile.offload_opt_states",
                   "does not work with zero_optimization.offload_optimizer", "one of the two");
}

/// engine.py _do_sanity_check.
void check_unmanaged_accumulation(const DsValues& values, const DsConfigContext& context,
                                  DsFindings& findings) {
  if (values.version() < DeepSpeedVersion{0, 19, 4} || values.flag("managed_gradient_accumulation"))
    return;
  const auto refuse = [&](const char* what) {
    findings.error("ds.unmanaged-accumulation"_rule, "managed_gradient_accumulation",
                   say("false does not work with {}", what), "true");
  };
  if (values.stage() < 2 && values.flag(key_of("overlap_comm")))
    refuse("overlap_comm below stage 2");
  if (context.pipeline_parallel > 1) refuse("pipeline parallelism");
  if (values.flag("compile.deepcompile")) refuse("DeepCompile");
  if (values.flag("amp.enabled")) refuse("amp");
}

}  // namespace

void check_zero_rules(const DsValues& values, const DsConfigContext& context,
                      DsFindings& findings) {
  // accelerate: utils/dataclasses.py DeepSpeedPlugin, which HF Trainer goes through as well.
  if (context.auto_resolver != AutoResolver::nobody && values.given("zero_optimization") == nullptr)
    findings.error("ds.zero-block-missing"_rule, "zero_optimization",
                   "accelerate and HF Trainer refuse a file without this block",
                   "a block, if only with stage 0");
  if (values.flag(key_of("legacy_stage1")))
    findings.error("ds.legacy-stage1"_rule, key_of("legacy_stage1"), "the old stage 1 was removed",
                   "false");
  if (values.stage() == 3 && values.flag(key_of("elastic_checkpoint")))
    findings.warning("ds.elastic-checkpoint"_rule, key_of("elastic_checkpoint"),
                     "has no effect at stage 3, where universal checkpoints took its place");
  check_reduction(values, findings);
  check_offload(values, findings);
  check_shard_groups(values, context, findings);
  check_deepcompile(values, findings);
  check_unmanaged_accumulation(values, context, findings);
}

}  // namespace shardplan
