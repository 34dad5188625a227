// train_batch_size = micro-batch x accumulation x ranks, closed as DeepSpeed closes it. What is
// wrong with it is said by rules/batch.
#pragma once

#include <cstdint>
#include <optional>

#include "load/ds_config/context.h"
#include "load/ds_config/values.h"

namespace shardplan {

struct BatchTriangle {
  std::optional<std::int64_t> train_batch;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> accumulation;
};

namespace batch_key {
inline constexpr const char* kTrain = "train_batch_size";
inline constexpr const char* kMicro = "train_micro_batch_size_per_gpu";
inline constexpr const char* kSteps = "gradient_accumulation_steps";
}  // namespace batch_key

/// Whether the file has one of the three keys.
bool has_batch_key(const DsValues& values);

/// The keys of the file; the job's own batch stands in where there are none.
BatchTriangle given_batch(const DsValues& values, const DsConfigContext& context);

/// The ranks of the triangle, world / sequence_parallel_size; nullopt where the world is not known
/// or does not divide.
std::optional<std::int64_t> batch_ranks(const DsValues& values, const DsConfigContext& context);

/// Two of the three give the third by integer division, and one alone means an accumulation of 1
/// (runtime/config.py _set_batch_related_parameters). Stays open where the ranks are not known or
/// elasticity chooses the batch.
BatchTriangle close_batch_triangle(const DsValues& values, const DsConfigContext& context);

}  // namespace shardplan
