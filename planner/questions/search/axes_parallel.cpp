// How many GPUs share a layer, a sequence, the layers and the experts. Data parallelism is what the
// other degrees leave of the GPUs.
#include <algorithm>

#include "frameworks/planning_registry.h"
#include "parallel/degrees.h"
#include "questions/search/degree_axes.h"

namespace shardplan {
namespace {

using namespace degree_axes;

constexpr std::int64_t kLeastTokens = 2048;  ///< of a sequence that each rank of it keeps, usually

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= most; n *= 2) all.push_back(n);
  return all;
}

Axis tensor_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  const std::vector<std::int64_t> all =
      degree_values(base, values, Degree::tensor, values.tensors,
                    divisors(base.cluster.gpus_per_node, base.cluster.gpus_per_node));
  Axis axis = axis_of("tensor", kTensorFlag, all);
  axis.apply = [all, base](Plan& p, std::size_t v) {
    p.parallel.tensor = all[v];
    // Until its own axis, if there is one.
    p.parallel.expert_tensor = traits_of(p).divides_experts ? all[v] : 1;
    planning_of(p).take_degree(p, Degree::tensor, base);
  };
  axis.rules = joined_rules(
      {{unsupported(Degree::tensor),
        {"tensor-parallel GPUs would be in several nodes", kGpuFlag,
         [asked = !values.tensors.empty(), own = base.parallel.tensor](const Plan& p, std::size_t) {
           return !asked && p.parallel.tensor != own && p.parallel.tensor > p.cluster.gpus_per_node;
         }},
        fills_the_world()},
       framework_rules(axis.name, false, base, values),
       {{"the tensor degree divides the heads or the width of the model unevenly", kModelFlag,
         [model](const Plan& p, std::size_t) { return has_problem(*model, p, Degree::tensor); }}}});
  return axis;
}

Axis sequence_parallel_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  std::vector<bool> all = values.sequence_parallels;
  if (all.empty()) {
    all = {false};
    if (searches(base, values, [](const FrameworkTraits& f) { return f.divides_tokens.get(); }))
      all.push_back(true);
    if (base.parallel.sequence_parallel && all.size() == 1) all.push_back(true);
  }
  Axis axis;
  axis.name = "sequence_parallel";
  axis.flag = "--sequence-parallels";
  for (const bool on : all) axis.values.emplace_back(on ? "on" : "off");
  axis.apply = [all](Plan& p, std::size_t v) { p.parallel.sequence_parallel = all[v]; };
  axis.rules = {
      {"sequence parallelism divides nothing where no tensor-parallel GPUs are", kTensorFlag,
       [](const Plan& p, std::size_t) {
         return p.parallel.sequence_parallel && p.parallel.tensor == 1;
       }},
      {"only Megatron-LM divides tokens among tensor-parallel GPUs", kStrategyFlag,
       [](const Plan& p, std::size_t) {
         return p.parallel.sequence_parallel && !traits_of(p).divides_tokens;
       }},
      {"Megatron-LM's experts beside a tensor degree want its tokens divided too", kTensorFlag,
       [experts = expert_count(*model) > 0](const Plan& p, std::size_t) {
         return experts && traits_of(p).divides_tokens && p.parallel.tensor > 1 &&
                !p.parallel.sequence_parallel;
       }},
      {"the tensor degree does not divide the tokens of a sequence", "--sequence-length",
       [model](const Plan& p, std::size_t) {
         return p.parallel.sequence_parallel && has_problem(*model, p, Degree::tensor);
       }}};
  return axis;
}

/// Ranks of a sequence keep kLeastTokens of it at least, unless more are asked for.
std::vector<std::int64_t> sequence_pieces(const Plan& base) {
  return powers_of_two(
      std::min(base.cluster.world(), base.workload.sequence_length / kLeastTokens));
}

Axis ulysses_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  // Rings (the context degree) and Ulysses differ little: one of them is enough.
  const bool varies = searches(base, values, [](const FrameworkTraits& f) {
    return f.degrees.of(Degree::sequence) == Support::yes &&
           f.degrees.of(Degree::context) != Support::yes;
  });
  const std::vector<std::int64_t> all =
      degree_values(base, values, Degree::sequence, values.ulysses,
                    varies ? sequence_pieces(base) : std::vector<std::int64_t>{});
  Axis axis = axis_of("ulysses", "--ulysses-degrees", all);
  axis.apply = [all, base](Plan& p, std::size_t v) {
    p.parallel.sequence = all[v];
    planning_of(p).take_degree(p, Degree::sequence, base);
  };
  axis.rules = joined_rules({{unsupported(Degree::sequence)},
                             framework_rules(axis.name, true, base, values),
                             {fills_the_world(),
                              {"the Ulysses degree does not divide the heads or the tokens",
                               kModelFlag, [model](const Plan& p, std::size_t) {
                                 return has_problem(*model, p, Degree::sequence);
                               }}}});
  return axis;
}

Axis context_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  const std::vector<std::int64_t> all =
      degree_values(base, values, Degree::context, values.contexts, sequence_pieces(base));
  Axis axis = axis_of("context", "--context-degrees", all);
  axis.apply = [all](Plan& p, std::size_t v) { p.parallel.context = all[v]; };
  axis.rules = {
      unsupported(Degree::context),
      fills_the_world(),
      {"twice the context degree does not divide the tokens of a sequence", "--sequence-length",
       [model](const Plan& p, std::size_t) { return has_problem(*model, p, Degree::context); }}};
  return axis;
}

Axis expert_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  const std::int64_t experts = std::max<std::int64_t>(1, expert_count(*model));
  const std::vector<std::int64_t> all =
      degree_values(base, values, Degree::expert, values.experts, divisors(experts, experts));
  Axis axis = axis_of("expert", "--expert-degrees", all);
  axis.apply = [all](Plan& p, std::size_t v) { p.parallel.expert = all[v]; };
  axis.rules = {
      unsupported(Degree::expert),
      {"only the tensor-parallel ranks of transformers can share experts, all of them", kTensorFlag,
       [](const Plan& p, std::size_t) {
         return p.parallel.expert > 1 && p.parallel.expert != p.parallel.tensor &&
                traits_of(p).split == SplitStyle::transformers;
       }},
      {"the expert degree divides neither the experts nor the GPUs of a stage, or another degree "
       "excludes it",
       kModelFlag,
       [model](const Plan& p, std::size_t) { return has_problem(*model, p, Degree::expert); }}};
  return axis;
}

/// An expert is on one rank, or on all that share a layer.
Axis expert_tensor_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  std::vector<bool> all = values.expert_tensors;
  if (all.empty()) {
    all = {false};
    if (searches(base, values, [](const FrameworkTraits& f) { return f.divides_experts.get(); }))
      all.push_back(true);
  }
  Axis axis;
  axis.name = "expert_tensor";
  axis.flag = "--expert-tensors";
  for (const bool divided : all) axis.values.emplace_back(divided ? "divided" : "whole");
  axis.apply = [all](Plan& p, std::size_t v) {
    p.parallel.expert_tensor = all[v] ? p.parallel.tensor : 1;
  };
  axis.rules = {
      {"no tensor-parallel GPUs to divide an expert", kTensorFlag,
       [](const Plan& p, std::size_t value) { return p.parallel.tensor == 1 && value > 0; }},
      {"only Megatron-LM divides an expert like a layer, beside the expert degree", kStrategyFlag,
       [all](const Plan& p, std::size_t v) { return all[v] && !traits_of(p).divides_experts; }},
      {"the degrees of experts do not divide the GPUs of a stage", kGpuFlag,
       [model](const Plan& p, std::size_t) {
         const std::int64_t shared = p.cluster.world() / p.parallel.pipeline;
         return shared % (p.parallel.expert * p.parallel.expert_tensor) != 0;
       }}};
  return axis;
}

struct ParallelAxis {
  Axis axis;
  void (*unset)(Parallel&);  ///< what it decides
};

/// One value, which divides nothing, as the job does.
bool is_idle(const ParallelAxis& a, const Plan& base) {
  if (a.axis.values.size() > 1) return false;
  Plan chosen = base, unset = base;
  a.axis.apply(chosen, 0);
  a.unset(unset.parallel);
  return chosen.parallel == base.parallel && unset.parallel == base.parallel;
}

/// Each axis unsets what those behind it decide: its rules, and theirs, look at degrees that are
/// chosen, not at what an earlier candidate has left.
std::vector<Axis> in_order(std::vector<ParallelAxis> all) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<void (*)(Parallel&)> behind;
    for (std::size_t k = i + 1; k < all.size(); ++k) behind.push_back(all[k].unset);
    all[i].axis.apply = [behind, apply = std::move(all[i].axis.apply)](Plan& p, std::size_t v) {
      for (const auto unset : behind) unset(p.parallel);
      apply(p, v);
    };
    axes.push_back(std::move(all[i].axis));
  }
  return axes;
}

}  // namespace

std::vector<Axis> parallel_axes(const Model& model, const Plan& base, const AxisValues& values) {
  const auto shared = std::make_shared<const Model>(model);
  Axis chunks = chunks_axis(shared, base, values);
  Axis schedule = schedule_axis(base, values, chunks.values);
  std::vector<ParallelAxis> all{
      {tensor_axis(shared, base, values), [](Parallel& p) { p.tensor = 1; }},
      {sequence_parallel_axis(shared, base, values),
       [](Parallel& p) { p.sequence_parallel = false; }},
      {ulysses_axis(shared, base, values), [](Parallel& p) { p.sequence = 1; }},
      {context_axis(shared, base, values), [](Parallel& p) { p.context = 1; }},
      {pipeline_axis(shared, base, values), [](Parallel& p) { p.pipeline = 1; }},
      {std::move(chunks), [](Parallel& p) { p.virtual_pipeline = 1; }},
      {std::move(schedule), [](Parallel& p) { p.schedule = PipelineSchedule::one_f_one_b; }},
      {balance_axis(shared, base, values), [](Parallel& p) { p.stage_layers.clear(); }}};
  if (expert_count(model) > 0 || !values.experts.empty()) {
    all.push_back({expert_axis(shared, base, values), [](Parallel& p) { p.expert = 1; }});
    all.push_back(
        {expert_tensor_axis(shared, base, values), [](Parallel& p) { p.expert_tensor = 1; }});
  }
  std::erase_if(all, [&](const ParallelAxis& a) { return is_idle(a, base); });
  return in_order(std::move(all));
}

}  // namespace shardplan
