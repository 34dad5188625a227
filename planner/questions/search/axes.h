// The axes of data-parallel training, with the values that are worth trying.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  std::vector<Checkpointing> checkpointings;
  std::vector<std::int64_t> micro_batches, accumulations;
  std::vector<std::int64_t> reduce_buckets, prefetch_buckets, persistence_thresholds;
  /// Samples of one optimizer step over all GPUs; accumulation follows from it.
  std::optional<std::int64_t> global_batch;
};

/// The space around `plan`. Throws InputError for a value that no plan of this cluster can have,
/// such as more GPUs than there are.
SearchSpace make_space(const Model& model, const Plan& plan, const AxisValues& values);

/// So that a list of numbers is one axis: sorted, each once, with `also`.
std::vector<std::int64_t> sorted_values(std::vector<std::int64_t> values,
                                        std::optional<std::int64_t> also = std::nullopt);

// The single axes; make_space puts them in order.
Axis gpu_axis(const Plan& base, const AxisValues& values);
Axis strategy_axis(const Plan& base, const AxisValues& values);
Axis precision_axis(const Plan& base, const AxisValues& values);
Axis optimizer_offload_axis(const Plan& base, const AxisValues& values);
Axis parameter_offload_axis(const Plan& base, const AxisValues& values);
Axis checkpointing_axis(const Model& model, const AxisValues& values);
Axis micro_batch_axis(const Plan& base, const AxisValues& values);
Axis accumulation_axis(const Plan& base, const AxisValues& values);
Axis reduce_bucket_axis(const Model& model, const Plan& base, const AxisValues& values);
Axis prefetch_bucket_axis(const Model& model, const Plan& base, const AxisValues& values);
Axis persistence_axis(const Model& model, const Plan& base, const AxisValues& values);

}  // namespace shardplan
