// PyTorch FSDP1.
#include <fmt/format.h>

#include "base/diagnostic.h"
#include "frameworks/usual_planning.h"
#include "report/quantity.h"
#include "report/words.h"

namespace shardplan {
namespace {

std::string_view strategy_name(const Plan& plan) {
  switch (plan.framework.fsdp1.sharding_strategy) {
    case Fsdp1Strategy::full_shard:
      return "FULL_SHARD";
    case Fsdp1Strategy::shard_grad_op:
      return "SHARD_GRAD_OP";
    case Fsdp1Strategy::hybrid_shard:
      return "HYBRID_SHARD";
    case Fsdp1Strategy::no_shard:
      return "NO_SHARD";
  }
  return "";
}

std::string_view prefetch_name(Fsdp1Prefetch prefetch) {
  return prefetch == Fsdp1Prefetch::pre    ? "BACKWARD_PRE"
         : prefetch == Fsdp1Prefetch::post ? "BACKWARD_POST"
                                           : "None";
}

std::string_view dtype_name(DType type) {
  return type == DType::bf16  ? "torch.bfloat16"
         : type == DType::f16 ? "torch.float16"
                              : "torch.float32";
}

std::string_view python_word(bool value) {
  return value ? "True" : "False";
}

std::string mixed_precision_lines(const Plan& plan) {
  const Fsdp1Options& o = plan.framework.fsdp1;
  if (!plan.precision.autocast() && !o.reduce_dtype) return "";
  return fmt::format(
      "    mixed_precision=MixedPrecision(\n"
      "        param_dtype={}, reduce_dtype={}, keep_low_precision_grads={}\n"
      "    ),\n",
      dtype_name(plan.precision.compute),
      dtype_name(o.reduce_dtype.value_or(plan.precision.compute)),
      python_word(o.keep_low_precision_grads));
}

/// A function that wraps the model as the plan says.
std::string fsdp1_python(const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  if (plan.framework.kind != FrameworkKind::fsdp1)
    throw InputError({.key = "framework.name",
                      .message = "FullyShardedDataParallel is FSDP1's, and the job runs under "
                                 "another framework",
                      .expected = "fsdp1"});
  const Fsdp1Options& o = plan.framework.fsdp1;
  std::string text = header_comment(job, e);
  text +=
      "import torch\n"
      "from torch.distributed.device_mesh import init_device_mesh\n"
      "from torch.distributed.fsdp import (\n"
      "    BackwardPrefetch,\n    CPUOffload,\n    FullyShardedDataParallel,\n"
      "    MixedPrecision,\n    ShardingStrategy,\n)\n"
      "from torch.distributed.fsdp.wrap import ModuleWrapPolicy\n\n"
      "FSDP_KWARGS = dict(\n";
  const std::string prefetch(prefetch_name(o.backward_prefetch));
  text += fmt::format(
      "    sharding_strategy=ShardingStrategy.{},\n{}"
      "    cpu_offload=CPUOffload(offload_params={}),\n"
      "    backward_prefetch={},\n    forward_prefetch={},\n    limit_all_gathers={},\n"
      "    use_orig_params={},\n)\n",
      strategy_name(plan), mixed_precision_lines(plan), python_word(o.cpu_offload),
      o.backward_prefetch == Fsdp1Prefetch::none ? prefetch : "BackwardPrefetch." + prefetch,
      python_word(o.forward_prefetch), python_word(o.limit_all_gathers),
      python_word(o.use_orig_params));
  if (plan.copies() > 1)
    text += fmt::format(
        "\n\n"
        "def make_mesh():\n"
        "    return init_device_mesh(\"cuda\", ({}, {}), mesh_dim_names=(\"replicate\", "
        "\"shard\"))\n",
        plan.copies(), plan.shard_ranks());
  text += fmt::format(
      "\n\n"
      "def shard(model, blocks):\n"
      "    \"\"\"`blocks` are the repeated layers, such as model.model.layers.\"\"\"\n"
      "    policy = ModuleWrapPolicy({{type(block) for block in blocks}})\n"
      "    return FullyShardedDataParallel(\n"
      "        model,\n        auto_wrap_policy=policy,\n"
      "        device_id=torch.cuda.current_device(),\n{}        **FSDP_KWARGS,\n    )\n",
      plan.copies() > 1 ? "        device_mesh=make_mesh(),\n" : "");
  if (plan.workload.gradient_accumulation > 1)
    text += plan.syncs_each_batch()
                ? "\n# Gradients are reduced after each micro-batch: no model.no_sync().\n"
                : "\n# All but the last micro-batch of a step run under model.no_sync().\n";
  return text;
}

constexpr ExportFormat kFsdp1Format{
    "fsdp1", "fsdp1.py",
    [](const Json&, const Job& job, const Estimate& e) { return fsdp1_python(job, e); }};

report::Text fsdp1_words(const Framework& framework) {
  switch (framework.fsdp1.sharding_strategy) {
    case Fsdp1Strategy::full_shard:
      return report::message("framework.fsdp1");
    case Fsdp1Strategy::shard_grad_op:
      return report::message("framework.fsdp1_gathered");
    case Fsdp1Strategy::hybrid_shard:
      return report::message("framework.fsdp1_hybrid");
    case Fsdp1Strategy::no_shard:
      break;
  }
  return report::message("framework.fsdp1_whole");
}

std::vector<const ExportFormat*> fsdp1_formats(const Plan&) {
  return {&kFsdp1Format, &kAccelerateFormat, &kLaunchFormat, &kJobFormat};
}

/// accelerate's FullyShardedDataParallelPlugin, version 1 (utils/dataclasses.py).
std::string fsdp1_accelerate(const Plan& plan) {
  const Fsdp1Options& o = plan.framework.fsdp1;
  return fmt::format(
             "distributed_type: FSDP\n"
             "fsdp_config:\n"
             "  fsdp_version: 1\n"
             "  fsdp_sharding_strategy: {}\n"
             "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
             "  fsdp_backward_prefetch: {}\n"
             "  fsdp_forward_prefetch: {}\n"
             "  fsdp_use_orig_params: {}\n"
             "  fsdp_offload_params: {}\n"
             "  fsdp_activation_checkpointing: {}\n"
             "  fsdp_cpu_ram_efficient_loading: true\n"
             "  fsdp_sync_module_states: true\n"
             "  fsdp_state_dict_type: {}_STATE_DICT\n",
             strategy_name(plan),
             o.backward_prefetch == Fsdp1Prefetch::none ? "NO_PREFETCH"
                                                        : prefetch_name(o.backward_prefetch),
             o.forward_prefetch, o.use_orig_params, o.cpu_offload,
             plan.checkpointing == Checkpointing::full,
             o.state_dict_type == StateDictType::full ? "FULL" : "SHARDED") +
         usual::accelerate_precision(plan);
}

void fsdp1_strategies(std::vector<Strategy>& all, const Plan& base, std::span<const std::int64_t>) {
  Framework framework = usual::own_or_default(base, FrameworkKind::fsdp1);
  framework.fsdp1.hybrid_shard_size.reset();
  framework.fsdp1.sharding_strategy = Fsdp1Strategy::full_shard;
  all.push_back({"FSDP1", framework});
  framework.fsdp1.sharding_strategy = Fsdp1Strategy::shard_grad_op;
  all.push_back({"FSDP1, not resharded", framework});
}

std::vector<FrameworkRule> fsdp1_rules(const RuleContext&) {
  return {{"parameter_offload",
           false,
           {"FSDP1 offloads parameters and optimizer together, to the host", "--optimizer-offloads",
            [](const Plan& p, std::size_t) {
              const ZeroOptions& asked = p.framework.deepspeed.zero;
              return asked.offload_param.device != asked.offload_optimizer.device;
            }}}};
}

/// A search keeps the devices that it has set in ZeRO's options, whatever the framework.
void take_fsdp1_offloads(Plan& plan) {
  const ZeroOptions& asked = plan.framework.deepspeed.zero;
  plan.framework.fsdp1.cpu_offload = asked.offload_param.device == OffloadDevice::cpu &&
                                     asked.offload_optimizer.device == OffloadDevice::cpu;
}

void fsdp1_offload_changes(std::vector<Change>& changes, const Plan& plan) {
  if (!plan.framework.fsdp1.cpu_offload)
    changes.push_back(
        usual::divided_on_host([](Plan& p) { p.framework.fsdp1.cpu_offload = true; }));
}

/// FULL_SHARD shards what DeepSpeed's stage 3 does.
PeerJob fsdp1_peers(const Plan& plan) {
  PeerJob job;
  job.zero3 = plan.framework.fsdp1.sharding_strategy == Fsdp1Strategy::full_shard;
  job.offloads_optimizer = job.offloads_parameters = plan.framework.fsdp1.cpu_offload;
  return job;
}

}  // namespace

extern const FrameworkPlanning kFsdp1Planning;
constinit const FrameworkPlanning kFsdp1Planning{
    .kind = FrameworkKind::fsdp1,
    .words = fsdp1_words,
    .group = usual::group,
    .own_format = &kFsdp1Format,
    .formats = fsdp1_formats,
    .accelerate = fsdp1_accelerate,
    .launch = usual::trainer_launch,
    .write_options = usual::write_options,
    .inline_files = usual::nothing_inlined,
    .is_searched = true,
    .strategies = fsdp1_strategies,
    .rules = fsdp1_rules,
    .take_degree = usual::no_degree,
    .take_precision = usual::no_precision,
    .take_offloads = take_fsdp1_offloads,
    .tries_offloads = true,
    .can_offload = true,
    .needs_pipeline_module = false,
    .balances = std::span<const StageBalance>{},
    .moves_to_zero = true,
    .offers_adapters = true,
    .lighter = usual::no_changes,
    .offloads = fsdp1_offload_changes,
    .peers = fsdp1_peers,
    .fit = nullptr,
    .fits_host = false,
};

}  // namespace shardplan
