// The axes of a search, with the values that are worth trying.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frameworks/registry.h"
#include "model/model.h"
#include "questions/search/space.h"

namespace shardplan {

/// Values of axes as asked for. An empty list takes what is usual, and what the job says.
struct AxisValues {
  std::vector<std::int64_t> gpus;
  std::vector<FrameworkKind> frameworks;
  std::vector<std::int64_t> zero_stages;
  std::vector<std::string> precisions;  ///< presets
  std::vector<OffloadDevice> optimizer_offloads, parameter_offloads;
  std::vector<CheckpointChoice> checkpointings;
  std::vector<std::int64_t> mlp_tiles;  ///< parts of a feed-forward; 0: it runs as it is
  std::vector<std::int64_t> micro_batches, accumulations;
  std::vector<std::int64_t> reduce_buckets, prefetch_buckets, persistence_thresholds;
  // Degrees of parallelism. Those of data are only a limit: they follow from the others.
  std::vector<std::int64_t> tensors, ulysses, contexts, pipelines, virtual_pipelines, experts, data;
  std::vector<bool> sequence_parallels, expert_tensors;
  std::vector<PipelineSchedule> schedules;
  std::vector<StageBalance> balances;
  /// Samples of one optimizer step over all GPUs; accumulation follows from it.
  std::optional<std::int64_t> global_batch;
};

/// The space around `plan`. Throws InputError for a value that no plan of this cluster can have,
/// such as more GPUs than there are.
SearchSpace make_space(const Model& model, const Plan& plan, const AxisValues& values);

/// So that a list of numbers is one axis: sorted, each once, with `also`.
std::vector<std::int64_t> sorted_values(std::vector<std::int64_t> values,
                                        std::optional<std::int64_t> also = std::nullopt);

/// The frameworks that are searched: those asked for, or the job's own.
std::vector<FrameworkKind> searched_frameworks(const Plan& base, const AxisValues& values);
/// Whether one of them is such a framework.
bool searches(const Plan& base, const AxisValues& values,
              bool (*such)(const FrameworkTraits& framework));

/// What frameworks cannot do on an axis: of each its own rules, which rule out only its own plans.
/// `early`: those before the rules that hold for all.
std::vector<AxisRule> framework_rules(std::string_view axis, bool early, const Plan& base,
                                      const AxisValues& values);

/// The lists one after the other.
std::vector<AxisRule> joined_rules(std::vector<std::vector<AxisRule>> lists);

// The single axes; make_space puts them in order.
Axis gpu_axis(const Plan& base, const AxisValues& values);
Axis strategy_axis(const Plan& base, const AxisValues& values);
/// Of every degree, and how stages take turns and share blocks; none where nothing but data
/// parallelism can be had.
std::vector<Axis> parallel_axes(const Model& model, const Plan& base, const AxisValues& values);
Axis precision_axis(const Plan& base, const AxisValues& values);
Axis optimizer_offload_axis(const Plan& base, const AxisValues& values);
Axis parameter_offload_axis(const Plan& base, const AxisValues& values);
Axis checkpointing_axis(const Model& model, const AxisValues& values);
/// One axis; none where nothing is asked for and sequences are short.
std::vector<Axis> tile_axes(const Model& model, const Plan& base, const AxisValues& values);
Axis micro_batch_axis(const Plan& base, const AxisValues& values);
Axis accumulation_axis(const Plan& base, const AxisValues& values);
Axis reduce_bucket_axis(const Model& model, const Plan& base, const AxisValues& values);
Axis prefetch_bucket_axis(const Model& model, const Plan& base, const AxisValues& values);
Axis persistence_axis(const Model& model, const Plan& base, const AxisValues& values);

}  // namespace shardplan
