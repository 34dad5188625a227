// How many GPUs, how large a batch, and what is recomputed.
#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "questions/search/axes.h"

#include "parallel/problem.h"
#include "save/checkpointing.h"

namespace shardplan {
namespace {

constexpr const char* kGpuFlag = "--gpu-counts";
constexpr const char* kMicroBatchFlag = "--micro-batches";
constexpr const char* kGlobalBatchFlag = "--global-batch";

/// Powers of two of a node, then of nodes, and the whole cluster.
std::vector<std::int64_t> usual_counts(const Cluster& cluster) {
  std::vector<std::int64_t> counts;
  for (std::int64_t n = 1; n < cluster.gpus_per_node; n *= 2) counts.push_back(n);
  for (std::int64_t n = 1; n < cluster.nodes; n *= 2) counts.push_back(n * cluster.gpus_per_node);
  return sorted_values(std::move(counts), cluster.world());
}

/// A part of a node, or whole nodes.
void check_count(std::int64_t count, const Cluster& cluster) {
  const std::int64_t node = cluster.gpus_per_node;
  if (count > cluster.world())
    throw InputError(
        {.key = fmt::format("{} and --cluster", kGpuFlag),
         .message = fmt::format("contradict each other: {} GPUs of {}", count, cluster.world()),
         .expected = fmt::format("at most {}", cluster.world())});
  if (count > node && count % node != 0)
    throw InputError({.key = fmt::format("{} and --cluster", kGpuFlag),
                      .message = fmt::format(
                          "contradict each other: {} GPUs do not fill nodes of {}", count, node),
                      .expected = fmt::format("a multiple of {0}, or at most {0}", node)});
}

std::vector<std::string> labels(const std::vector<std::int64_t>& values) {
  std::vector<std::string> all;
  for (const std::int64_t v : values) all.push_back(fmt::format("{}", v));
  return all;
}

}  // namespace

Axis gpu_axis(const Plan& base, const AxisValues& values) {
  const std::vector<std::int64_t> all =
      values.gpus.empty() ? usual_counts(base.cluster) : sorted_values(values.gpus);
  for (const std::int64_t n : all) check_count(n, base.cluster);
  Axis axis;
  axis.name = "gpus";
  axis.flag = kGpuFlag;
  axis.values = labels(all);
  axis.apply = [all, node = base.cluster.gpus_per_node](Plan& p, std::size_t v) {
    p.cluster.gpus_per_node = std::min(all[v], node);
    p.cluster.nodes = all[v] / p.cluster.gpus_per_node;
  };
  return axis;
}

Axis checkpointing_axis(const Model& model, const AxisValues& values) {
  const bool can = std::any_of(model.segments.begin(), model.segments.end(),
                               [](const Segment& s) { return s.checkpointable; });
  std::vector<CheckpointChoice> all = values.checkpointings;
  if (all.empty())
    all = {{Checkpointing::none, {}}, {Checkpointing::selective, {}}, {Checkpointing::full, {}}};
  Axis axis;
  axis.name = "checkpointing";
  axis.flag = "--checkpointings";
  for (const CheckpointChoice& choice : all) axis.values.push_back(checkpointing_word(choice));
  axis.apply = [all](Plan& p, std::size_t v) { p.set_checkpointing(all[v]); };
  axis.rules = {
      {"the model has no blocks to checkpoint", "--model",
       [can](const Plan& p, std::size_t) {
         return !can && p.checkpointing != Checkpointing::none;
       }},
      {"the framework has no such checkpointing", "--checkpointings",
       [](const Plan& p, std::size_t) { return traits_of(p).checkpoint_problem(p).has_value(); }}};
  return axis;
}

Axis micro_batch_axis(const Plan& base, const AxisValues& values) {
  const std::vector<std::int64_t> all =
      values.micro_batches.empty()
          ? sorted_values({1, 2, 4, 8, 16, 32, 64, 128}, base.workload.micro_batch)
          : sorted_values(values.micro_batches);
  Axis axis;
  axis.name = "micro_batch";
  axis.flag = kMicroBatchFlag;
  axis.values = labels(all);
  axis.apply = [all](Plan& p, std::size_t v) { p.workload.micro_batch = all[v]; };
  if (const auto batch = values.global_batch)
    axis.rules = {
        {fmt::format("a global batch of {} is no multiple of GPUs times micro-batch", *batch),
         kGlobalBatchFlag,
         [batch](const Plan& p, std::size_t) { return *batch % p.samples_at_once() != 0; }}};
  return axis;
}

Axis accumulation_axis(const Plan& base, const AxisValues& values) {
  Axis axis;
  axis.name = "accumulation";
  axis.flag = "--accumulations";
  axis.rules = {{"the interleaved schedule takes micro-batches as many at a time as stages",
                 "--virtual-pipelines", [](const Plan& p, std::size_t) {
                   return p.parallel.virtual_pipeline > 1 &&
                          p.workload.gradient_accumulation % p.parallel.pipeline != 0;
                 }}};
  const auto batch = values.global_batch;
  if (batch && values.accumulations.empty()) {
    axis.values = {"from the global batch"};
    axis.apply = [batch](Plan& p, std::size_t) {
      p.workload.gradient_accumulation = std::max<std::int64_t>(1, *batch / p.samples_at_once());
    };
    return axis;
  }
  const std::vector<std::int64_t> all = values.accumulations.empty()
                                            ? std::vector{base.workload.gradient_accumulation}
                                            : sorted_values(values.accumulations);
  axis.values = labels(all);
  axis.apply = [all](Plan& p, std::size_t v) { p.workload.gradient_accumulation = all[v]; };
  if (batch)
    axis.rules.push_back(
        {fmt::format("GPUs, micro-batch and accumulation do not multiply to {}", *batch),
         kGlobalBatchFlag, [batch](const Plan& p, std::size_t) {
           return checked_mul(p.samples_at_once(), p.workload.gradient_accumulation) != *batch;
         }});
  return axis;
}

}  // namespace shardplan
