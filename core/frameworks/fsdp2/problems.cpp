#include "frameworks/fsdp2/problems.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "model/model.h"
#include "parallel/sharding.h"

namespace shardplan {
namespace {

/// Whether experts are products of rows that were sorted, which are what is exchanged.
bool sorts_rows(const Model& model) {
  const auto is_weight_of_experts = [&](ParameterId id) {
    if (id == kNone) return false;
    const Parameter& p = model.parameters[static_cast<std::size_t>(id)];
    return p.kind == ParameterKind::expert && p.shape.size() == 3;
  };
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind != OpKind::grouped_linear && is_weight_of_experts(op.weight)) return false;
  return true;
}

/// A table that the first stage looks up and the last one multiplies with.
bool ties_head(const Model& model) {
  const auto uses = [&](OpKind kind, std::size_t parameter) {
    for (const Segment& segment : model.segments)
      for (const Op& op : segment.graph.ops())
        if (op.kind == kind && op.weight == static_cast<ParameterId>(parameter)) return true;
    return false;
  };
  for (std::size_t i = 0; i < model.parameters.size(); ++i)
    if (uses(OpKind::embedding, i) && uses(OpKind::linear, i)) return true;
  return false;
}

/// Attention that PyTorch's context_parallel cannot read block by block: its kernels are given no
/// mask, and their work is balanced for causal ones. A tower's is not divided. Null: there is none.
const Op* unlike_blocks(const Model& model, std::int64_t tokens) {
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops()) {
      if (op.kind != OpKind::sdpa || segment.of_images) continue;
      const bool masked = (op.mask.per > 0 && tokens >= op.mask_from) || op.scores_bias != kNone;
      if (masked || (op.within > 0 && op.within < tokens) || !op.causal) return &op;
    }
  return nullptr;
}

/// torch.distributed.pipelining trains; forward passes alone are not estimated in stages.
std::optional<DivisionProblem> fsdp2_stage_problem(const Plan& plan) {
  if (plan.parallel.pipeline == 1) return std::nullopt;
  if (plan.workload.kind != WorkKind::train)
    return DivisionProblem{"parallel.pipeline",
                           "stages under fsdp2 are estimated in training alone", "1"};
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> fsdp2_division_problem(const Model& model, const Plan& plan) {
  if (plan.parallel.pipeline > 1 && ties_head(model))
    return DivisionProblem{
        "parallel.pipeline",
        "stages of torch.distributed.pipelining share no embedding with the head",
        "1, or a network whose head has a weight of its own"};
  if (plan.parallel.context > 1 && !model.facts.own_ring)
    if (const Op* op = unlike_blocks(model, plan.workload.sequence_length))
      return DivisionProblem{
          "parallel.context",
          op->causal ? fmt::format("PyTorch's context_parallel takes causal attention without a "
                                   "mask, and a network of type '{}' has a mask or a window",
                                   model.facts.model_type)
                     : fmt::format("PyTorch's context_parallel takes causal attention without a "
                                   "mask, and a network of type '{}' has another",
                                   model.facts.model_type),
          "1, or parallel.sequence"};
  if (plan.parallel.expert > 1 && !sorts_rows(model))
    return DivisionProblem{
        "parallel.expert",
        fmt::format("experts of a network of type '{}' cannot be estimated divided under fsdp2 yet",
                    model.facts.model_type),
        "1"};
  const auto size = plan.framework.fsdp2.hybrid_shard_size;
  if (!size || plan.replicas() % *size == 0) return std::nullopt;
  return DivisionProblem{
      "framework.hybrid_shard_size",
      fmt::format("{} does not divide the {} data-parallel GPUs", *size, plan.replicas()),
      fmt::format("{}", nearest_divisor(plan.replicas(), *size))};
}

/// torchao 0.18 (float8/config.py, Float8LinearConfig): enable_fsdp_float8_all_gather stops where
/// weights have scales of their rows.
std::optional<DivisionProblem> float8_gather_problem(const Plan& plan) {
  const Fsdp2Options& options = plan.framework.fsdp2;
  if (options.float8_all_gather == Float8Gather::none) return std::nullopt;
  if (plan.precision.linear != LinearRecipe::fp8_tensorwise)
    return DivisionProblem{"framework.float8_all_gather",
                           "torchao 0.18 gathers weights in 8 bits only where they multiply in fp8 "
                           "with a scale for each tensor (\"enable_fsdp_float8_all_gather only "
                           "supports tensorwise scaling granularity\")",
                           "none, or precision.linear fp8-tensorwise"};
  if (options.cpu_offload)
    return DivisionProblem{
        "framework.float8_all_gather",
        "weights that are cast to 8 bits behind their copy from the host are not "
        "estimated",
        "none, or cpu_offload false"};
  return std::nullopt;
}

/// Beside expert parallelism: what torchtitan and NeMo Automodel can do and no lowering covers.
std::optional<DivisionProblem> fsdp2_plan_problem(const Plan& plan) {
  const Fsdp2Options& options = plan.framework.fsdp2;
  if (auto problem = fsdp2_stage_problem(plan)) return problem;
  if (auto problem = float8_gather_problem(plan)) return problem;
  if (plan.parallel.expert == 1) return std::nullopt;
  constexpr std::string_view kBeside = "beside an expert degree with fsdp2 cannot be estimated yet";
  const auto problem = [](std::string_view key, std::string_view found, std::string_view expected) {
    return DivisionProblem{std::string(key), std::string(found), std::string(expected)};
  };
  if (plan.parallel.tensor > 1) return problem("parallel.tensor", kBeside, "1");
  if (options.hybrid_shard_size)
    return problem(
        "framework.hybrid_shard_size",
        "copies of the states beside an expert degree with fsdp2 cannot be estimated yet",
        "leave it out");
  if (options.cpu_offload) return problem("framework.cpu_offload", kBeside, "false");
  if (options.units == Fsdp2Wrap::whole) return problem("framework.units", kBeside, "blocks");
  if (plan.workload.kind != WorkKind::train)
    return problem(
        "parallel.expert",
        "a workload other than training beside an expert degree with fsdp2 cannot be estimated yet",
        "1");
  if (plan.workload.lora && !plan.workload.lora->parameters.empty())
    return problem("workload.lora.parameters",
                   "adapters of experts beside an expert degree with fsdp2 cannot be estimated yet",
                   "leave them out");
  return std::nullopt;
}

}  // namespace shardplan
