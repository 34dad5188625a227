// An engine that generates, as a block of a workload says it.
#pragma once

#include <optional>
#include <string_view>

#include "base/diagnostic.h"
#include "json/reader.h"
#include "model/model.h"
#include "options/option.h"
#include "plan/plan.h"
#include "rollout/engine.h"

namespace shardplan {

/// The block `key` of `workload`, read by `table`, which is one of an engine's; nothing without it.
/// What the engine is decides its defaults; those that the GPU decides are 0 until choose_sizes
/// (core/rollout/sizes.h). The block's own reader checks that all keys are
/// known.
std::optional<RolloutEngine> read_engine(ObjectReader& workload, std::string_view key,
                                         const OptionTable<RolloutEngine>& table);

/// Answers have `answer` tokens in the mean. Throws InputError where the longest is said to have
/// less.
void check_longest(ObjectReader& workload, std::string_view key, const RolloutEngine& engine,
                   std::int64_t answer);

/// `sequence` tokens are in the longest sequence: 0 leaves an open length open. Throws InputError
/// where the engine's own length is less.
void fit_length(ObjectReader& workload, std::string_view key, RolloutEngine& engine,
                std::int64_t sequence);

/// Throws InputError where the engine's degree does not divide the heads or the GPUs, or where its
/// share of a GPU has no room for one sequence, with the share that would do.
void check_serving(ObjectReader& job, const Model& model, const Plan& plan);

}  // namespace shardplan
