// Which framework, how it shards, in which types, and what it keeps on the host.
#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "frameworks/planning_registry.h"
#include "load/precision.h"
#include "options/choices.h"
#include "questions/search/axes.h"

namespace shardplan {
namespace {

constexpr const char* kPrecisionFlag = "--precisions";
constexpr const char* kStrategyFlag = "--frameworks/--zero-stages";
constexpr const char* kOptimizerFlag = "--optimizer-offloads";
constexpr const char* kParameterFlag = "--parameter-offloads";

/// As searched: frameworks that have other options follow them (FrameworkPlanning::take_offloads).
OffloadDevice optimizer_device(const Plan& plan) {
  return plan.framework.deepspeed.zero.offload_optimizer.device;
}
OffloadDevice parameter_device(const Plan& plan) {
  return plan.framework.deepspeed.zero.offload_param.device;
}

std::vector<Strategy> strategies(const Plan& base, const AxisValues& values) {
  std::vector<std::int64_t> stages = sorted_values(values.zero_stages);
  const bool asked = !stages.empty();
  if (!asked) stages = {0, 1, 2, 3};
  if (asked && !searches(base, values, [](const FrameworkTraits& f) { return f.has_zero.get(); }))
    throw InputError({.key = "--zero-stages and --frameworks",
                      .message = "contradict each other: only DeepSpeed has ZeRO stages",
                      .expected = "deepspeed among the frameworks"});
  std::vector<Strategy> all;
  for (const FrameworkKind kind : searched_frameworks(base, values))
    planning_of(kind).strategies(all, base, stages);
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
  const bool others =
      std::any_of(values.frameworks.begin(), values.frameworks.end(), [&](FrameworkKind kind) {
        return traits_of(kind).keeps_master != traits_of(base).keeps_master;
      });
  if (others && counterpart(names[0]) != names[0]) names.push_back(counterpart(names[0]));
  return names;
}

std::vector<AxisRule> precision_rules(const Axis& axis, const Plan& base,
                                      const AxisValues& values) {
  return joined_rules(
      {framework_rules(axis.name, true, base, values),
       {{"only DeepSpeed and Megatron-LM keep master weights beside 16-bit parameters",
         kStrategyFlag,
         [](const Plan& p, std::size_t) {
           return !traits_of(p).keeps_master && p.precision.master;
         }}},
       framework_rules(axis.name, false, base, values),
       {{"the GPU has no bf16 units", "--cluster",
         [](const Plan& p, std::size_t) {
           return p.precision.compute == DType::bf16 && lacks(p.cluster.gpu, PeakRate::bf16);
         }},
        {"plain PyTorch has no data parallelism", "--gpu-counts", [](const Plan& p, std::size_t) {
           return !traits_of(p).data_parallel && p.data_ranks() > 1;
         }}}});
}

std::vector<OffloadDevice> devices(const std::vector<OffloadDevice>& asked, const Plan& base,
                                   const AxisValues& values) {
  if (!asked.empty()) return asked;
  const std::vector<FrameworkKind> kinds = searched_frameworks(base, values);
  const bool tried = std::any_of(kinds.begin(), kinds.end(), [](FrameworkKind kind) {
    return planning_of(kind).tries_offloads.get();
  });
  if (!tried) return {OffloadDevice::none};
  std::vector<OffloadDevice> usual{OffloadDevice::none, OffloadDevice::cpu};
  if (base.cluster.nvme && base.cluster.nvme->capacity.count() > 0)
    usual.push_back(OffloadDevice::nvme);
  return usual;
}

Axis offload_axis(std::string name, std::string flag, const std::vector<OffloadDevice>& all) {
  Axis axis;
  axis.name = std::move(name);
  axis.flag = std::move(flag);
  for (const OffloadDevice device : all) {
    axis.values.emplace_back(name_of(device));
    const NamedValue* choice = find_choice(kOffloadDevices, name_of(device));
    axis.labels.emplace_back(choice->label);
  }
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
  axis.rules = framework_rules(axis.name, false, base, values);
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
  axis.apply = [all, base](Plan& p, std::size_t v) {
    // The job's own precision with its own framework is exactly as it was said.
    const bool own = all[v].name == base.precision.name && p.framework.kind == base.framework.kind;
    p.precision = all[v];
    planning_of(p).take_precision(p, base, own);
  };
  axis.rules = precision_rules(axis, base, values);
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
  axis.rules = joined_rules(
      {{{"DDP, plain PyTorch and Megatron-LM keep their states on the GPU", kStrategyFlag,
         [](const Plan& p, std::size_t) {
           return optimizer_device(p) != OffloadDevice::none && !planning_of(p).can_offload;
         }}},
       framework_rules(axis.name, false, base, values),
       {{"DeepSpeed offloads to NVMe at ZeRO stage 3 only, and FSDP2 not at all", kStrategyFlag,
         [](const Plan& p, std::size_t) {
           return optimizer_device(p) == OffloadDevice::nvme && !is_zero3(p);
         }}}});
  return axis;
}

Axis parameter_offload_axis(const Plan& base, const AxisValues& values) {
  const std::vector<OffloadDevice> all = devices(values.parameter_offloads, base, values);
  Axis axis = offload_axis("parameter_offload", kParameterFlag, all);
  axis.apply = [all](Plan& p, std::size_t v) {
    set_device(p.framework.deepspeed.zero.offload_param, all[v]);
    planning_of(p).take_offloads(p);
  };
  axis.rules = joined_rules(
      {{{"parameters are offloaded at ZeRO stage 3 and by FSDP2 only", kStrategyFlag,
         [](const Plan& p, std::size_t) {
           return parameter_device(p) != OffloadDevice::none && !traits_of(p).shards_parameters(p);
         }}},
       framework_rules(axis.name, false, base, values)});
  return axis;
}

}  // namespace shardplan
