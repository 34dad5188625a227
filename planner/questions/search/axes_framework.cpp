// Which framework, how it shards, in which types, and what it keeps on the host.
#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "frameworks/registry.h"
#include "load/precision.h"
#include "optimizers/description.h"
#include "questions/changes.h"
#include "questions/search/axes.h"

namespace shardplan {
namespace {

constexpr const char* kPrecisionFlag = "--precisions";
constexpr const char* kStrategyFlag = "--frameworks/--zero-stages";
constexpr const char* kOptimizerFlag = "--optimizer-offloads";
constexpr const char* kParameterFlag = "--parameter-offloads";

bool is_deepspeed(const Plan& plan) {
  return plan.framework.kind == FrameworkKind::deepspeed;
}
bool is_megatron(const Plan& plan) {
  return plan.framework.kind == FrameworkKind::megatron;
}
/// Master weights beside 16-bit parameters: DeepSpeed and Megatron-LM have nothing else.
bool keeps_master(FrameworkKind kind) {
  return kind == FrameworkKind::deepspeed || kind == FrameworkKind::megatron;
}
const ZeroOptions& zero_of(const Plan& plan) {
  return plan.framework.deepspeed.zero;
}
OffloadDevice optimizer_device(const Plan& plan) {
  return zero_of(plan).offload_optimizer.device;
}
OffloadDevice parameter_device(const Plan& plan) {
  return zero_of(plan).offload_param.device;
}

struct Strategy {
  std::string label;
  Framework framework;
};

/// The job's own options at its own stage, DeepSpeed's defaults for the rest of another one.
Strategy zero_strategy(const Plan& base, int stage) {
  Plan plan = base;
  if (!is_deepspeed(base) || zero_of(base).stage != stage) set_zero_stage(plan, stage);
  return {fmt::format("ZeRO-{}", stage), plan.framework};
}

/// The distributed optimizer, which costs nothing that counts, with gradients whole and divided;
/// without it where the job says so.
void add_megatron(std::vector<Strategy>& all, Framework framework) {
  MegatronOptions& options = framework.megatron;
  if (!options.distributed_optimizer) all.push_back({"Megatron-LM, whole optimizer", framework});
  options.distributed_optimizer = true;
  options.shard_gradients = false;
  all.push_back({"Megatron-LM, divided optimizer", framework});
  options.shard_gradients = true;
  all.push_back({"Megatron-LM, divided gradients", framework});
}

void add_strategies(std::vector<Strategy>& all, const Plan& base, FrameworkKind kind,
                    const std::vector<std::int64_t>& stages) {
  Framework framework = base.framework.kind == kind ? base.framework : Framework{};
  framework.kind = kind;
  switch (kind) {
    case FrameworkKind::deepspeed:
      for (const std::int64_t stage : stages)
        all.push_back(zero_strategy(base, static_cast<int>(stage)));
      break;
    case FrameworkKind::fsdp2:
      framework.fsdp2.reshard_after_forward = true;
      all.push_back({"FSDP2", framework});
      framework.fsdp2.reshard_after_forward = false;
      all.push_back({"FSDP2, not resharded", framework});
      break;
    case FrameworkKind::ddp:
      framework.ddp.zero_redundancy_optimizer = false;
      all.push_back({"DDP", framework});
      framework.ddp.zero_redundancy_optimizer = true;
      all.push_back({"DDP, split optimizer", framework});
      break;
    case FrameworkKind::single:
      all.push_back({"plain PyTorch", framework});
      break;
    case FrameworkKind::megatron:
      add_megatron(all, framework);
      break;
    case FrameworkKind::native:
      throw InputError({.key = "--frameworks",
                        .message = "the native engine cannot be searched",
                        .expected = "deepspeed, fsdp2, ddp, single or megatron"});
  }
}

std::vector<Strategy> strategies(const Plan& base, const AxisValues& values) {
  const std::vector<FrameworkKind> kinds = searched_frameworks(base, values);
  std::vector<std::int64_t> stages = sorted_values(values.zero_stages);
  const bool asked = !stages.empty();
  if (!asked) stages = {0, 1, 2, 3};
  if (asked && std::find(kinds.begin(), kinds.end(), FrameworkKind::deepspeed) == kinds.end())
    throw InputError({.key = "--zero-stages and --frameworks",
                      .message = "contradict each other: only DeepSpeed has ZeRO stages",
                      .expected = "deepspeed among the frameworks"});
  std::vector<Strategy> all;
  for (const FrameworkKind kind : kinds) add_strategies(all, base, kind, stages);
  return all;
}

/// The preset with the same numerics where nothing keeps master weights, and back.
std::string counterpart(const std::string& precision) {
  for (const std::string type : {"bf16", "fp16"}) {
    if (precision == type + "-master") return type + "-autocast";
    if (precision == type + "-autocast") return type + "-master";
  }
  return precision;
}

/// The job's own precision; with several frameworks, also what the others call the same.
std::vector<std::string> usual_precisions(const Plan& base, const AxisValues& values) {
  std::vector<std::string> names{base.precision.name};
  const bool others = std::any_of(
      values.frameworks.begin(), values.frameworks.end(),
      [&](FrameworkKind kind) { return keeps_master(kind) != keeps_master(base.framework.kind); });
  if (others && counterpart(names[0]) != names[0]) names.push_back(counterpart(names[0]));
  return names;
}

/// What DeepSpeed is told of types is as in `own`.
void set_types(Plan& plan, const DeepSpeedOptions& own) {
  DeepSpeedOptions& options = plan.framework.deepspeed;
  options.engine_dtype = own.engine_dtype;
  options.torch_autocast = own.torch_autocast;
  options.torch_autocast_dtype = own.torch_autocast_dtype;
  options.master_weights_16bit = own.master_weights_16bit;
  options.optimizer_states_16bit = own.optimizer_states_16bit;
}

void set_precision(Plan& plan, const Precision& precision) {
  plan.precision = precision;
  if (!is_deepspeed(plan)) return;
  DeepSpeedOptions& options = plan.framework.deepspeed;
  options.engine_dtype = precision.params;
  options.torch_autocast = precision.autocast();
  options.torch_autocast_dtype.reset();
  if (precision.autocast()) options.torch_autocast_dtype = precision.compute;
  options.master_weights_16bit = options.optimizer_states_16bit = false;
}

std::vector<AxisRule> precision_rules(const Precision& own) {
  return {
      {"DeepSpeed keeps master weights beside 16-bit parameters, always", kStrategyFlag,
       [own](const Plan& p, std::size_t) {
         return is_deepspeed(p) && p.precision.params != DType::f32 && !p.precision.master &&
                p.precision.name != own.name;
       }},
      {"only DeepSpeed and Megatron-LM keep master weights beside 16-bit parameters", kStrategyFlag,
       [](const Plan& p, std::size_t) {
         return !keeps_master(p.framework.kind) && p.precision.master;
       }},
      {"Megatron-LM has no autocast, and always keeps master weights", kStrategyFlag,
       [](const Plan& p, std::size_t) {
         return is_megatron(p) && (p.precision.autocast() ||
                                   (p.precision.params != DType::f32 && !p.precision.master));
       }},
      {"the GPU has no bf16 units", "--cluster", [](const Plan& p, std::size_t) {
         const PeakFlops& peak = p.cluster.gpu.peak;
         return p.precision.compute == DType::bf16 && peak.fp16 && !peak.bf16;
       }}};
}

std::vector<OffloadDevice> devices(const std::vector<OffloadDevice>& asked, const Plan& base,
                                   const AxisValues& values) {
  if (!asked.empty()) return asked;
  const std::vector<FrameworkKind> kinds = searched_frameworks(base, values);
  const bool megatron_only = std::all_of(kinds.begin(), kinds.end(), [](FrameworkKind kind) {
    return kind == FrameworkKind::megatron;
  });
  if (megatron_only) return {OffloadDevice::none};
  std::vector<OffloadDevice> usual{OffloadDevice::none, OffloadDevice::cpu};
  if (base.cluster.nvme && base.cluster.nvme->capacity.count() > 0)
    usual.push_back(OffloadDevice::nvme);
  return usual;
}

Axis offload_axis(std::string name, std::string flag, const std::vector<OffloadDevice>& all) {
  Axis axis;
  axis.name = std::move(name);
  axis.flag = std::move(flag);
  for (const OffloadDevice device : all) axis.values.emplace_back(name_of(device));
  return axis;
}

template <typename Block>
void set_device(Block& block, OffloadDevice device) {
  block.device = device;
  if (device == OffloadDevice::nvme && block.nvme_path.empty()) block.nvme_path = "/local_nvme";
}

}  // namespace

Axis strategy_axis(const Plan& base, const AxisValues& values) {
  std::vector<Strategy> all = strategies(base, values);
  Axis axis;
  axis.name = "strategy";
  axis.flag = kStrategyFlag;
  for (const Strategy& s : all) axis.values.push_back(s.label);
  axis.apply = [all = std::move(all)](Plan& p, std::size_t v) { p.framework = all[v].framework; };
  // Megatron-LM's limits are those of load/megatron.cpp.
  axis.rules = {{"Megatron-LM trains all parameters, with Adam or SGD", "--optimizer",
                 [](const Plan& p, std::size_t) {
                   const bool known = !p.optimizer.kind->megatron.empty();
                   return is_megatron(p) && (p.workload.lora || !known);
                 }}};
  return axis;
}

Axis precision_axis(const Plan& base, const AxisValues& values) {
  Axis axis;
  axis.name = "precision";
  axis.flag = kPrecisionFlag;
  axis.values = values.precisions.empty() ? usual_precisions(base, values) : values.precisions;
  std::vector<Precision> all;
  for (const std::string& name : axis.values)
    all.push_back(name == base.precision.name ? base.precision : precision_preset(name));
  const FrameworkKind home = base.framework.kind;
  const std::string own = base.precision.name;
  axis.apply = [all, home, own, types = base.framework.deepspeed](Plan& p, std::size_t v) {
    // The job's own precision with its own framework is exactly as it was said.
    if (all[v].name == own && p.framework.kind == home) {
      p.precision = all[v];
      if (is_deepspeed(p)) set_types(p, types);
    } else {
      set_precision(p, all[v]);
    }
  };
  axis.rules = precision_rules(base.precision);
  axis.rules.push_back(
      {"plain PyTorch has no data parallelism", "--gpu-counts", [](const Plan& p, std::size_t) {
         return p.framework.kind == FrameworkKind::single && p.data_ranks() > 1;
       }});
  if (!values.data.empty())
    axis.rules.push_back({"another data-parallel degree than those asked for", "--data-degrees",
                          [data = values.data](const Plan& p, std::size_t) {
                            return std::find(data.begin(), data.end(), p.data_ranks()) ==
                                   data.end();
                          }});
  return axis;
}

Axis optimizer_offload_axis(const Plan& base, const AxisValues& values) {
  const std::vector<OffloadDevice> all = devices(values.optimizer_offloads, base, values);
  Axis axis = offload_axis("optimizer_offload", kOptimizerFlag, all);
  axis.apply = [all](Plan& p, std::size_t v) {
    set_device(p.framework.deepspeed.zero.offload_optimizer, all[v]);
  };
  axis.rules = {{"DDP, plain PyTorch and Megatron-LM keep their states on the GPU", kStrategyFlag,
                 [](const Plan& p, std::size_t) {
                   return optimizer_device(p) != OffloadDevice::none && !is_deepspeed(p) &&
                          p.framework.kind != FrameworkKind::fsdp2;
                 }},
                {"DeepSpeed offloads the optimizer from ZeRO stage 1 on", kStrategyFlag,
                 [](const Plan& p, std::size_t) {
                   return optimizer_device(p) != OffloadDevice::none && is_deepspeed(p) &&
                          zero_of(p).stage == 0;
                 }},
                {"DeepSpeed's pipeline with an optimizer on the host cannot be estimated",
                 "--pipeline-degrees",
                 [](const Plan& p, std::size_t) {
                   return optimizer_device(p) != OffloadDevice::none && is_deepspeed(p) &&
                          p.parallel.pipeline > 1;
                 }},
                {"DeepSpeed offloads to NVMe at ZeRO stage 3 only, and FSDP2 not at all",
                 kStrategyFlag, [](const Plan& p, std::size_t) {
                   return optimizer_device(p) == OffloadDevice::nvme &&
                          (!is_deepspeed(p) || zero_of(p).stage < 3);
                 }}};
  return axis;
}

Axis parameter_offload_axis(const Plan& base, const AxisValues& values) {
  const std::vector<OffloadDevice> all = devices(values.parameter_offloads, base, values);
  Axis axis = offload_axis("parameter_offload", kParameterFlag, all);
  axis.apply = [all](Plan& p, std::size_t v) {
    set_device(p.framework.deepspeed.zero.offload_param, all[v]);
    p.framework.fsdp2.cpu_offload = p.framework.kind == FrameworkKind::fsdp2 &&
                                    all[v] == OffloadDevice::cpu &&
                                    optimizer_device(p) == OffloadDevice::cpu;
  };
  axis.rules = {{"parameters are offloaded at ZeRO stage 3 and by FSDP2 only", kStrategyFlag,
                 [](const Plan& p, std::size_t) {
                   const bool shards = p.framework.kind == FrameworkKind::fsdp2 ||
                                       (is_deepspeed(p) && zero_of(p).stage == 3);
                   return parameter_device(p) != OffloadDevice::none && !shards;
                 }},
                {"FSDP2 offloads parameters and optimizer together, to the host", kOptimizerFlag,
                 [](const Plan& p, std::size_t) {
                   return p.framework.kind == FrameworkKind::fsdp2 &&
                          parameter_device(p) != optimizer_device(p);
                 }}};
  return axis;
}

}  // namespace shardplan
