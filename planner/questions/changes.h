// Single changes to a plan that a person could make, each with the words for it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "json/document.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// A field of the job, by its JSON pointer, and what is written there; null takes it away.
struct FieldEdit {
  std::string pointer;
  Json value;
};

/// What a person gives up for a change, the least first.
enum class Sacrifice : std::uint8_t {
  nothing,             ///< the same result, in other memory or another order
  number_format,       ///< fewer bits
  more_gpus,           ///< money
  trained_parameters,  ///< adapters in their place
  samples,             ///< shorter ones
};

struct Change {
  std::string what;  ///< "activation checkpointing on every block"
  std::string how;   ///< where to set it: "gradient_checkpointing: true; --checkpointing full"
  std::function<void(Plan&)> apply;
  /// Changes of one subject exclude each other: only one of them is taken in a combination.
  std::string subject;
  /// What says it in the job, in place of `apply`, where that changes more than a plan.
  std::vector<FieldEdit> fields{};
  Sacrifice sacrifice = Sacrifice::nothing;
};

/// The job with all of them said.
Json with_fields(Json job, const std::vector<Change>& changes);

/// Micro-batches of `micro` samples, `accumulation` of them a step. `what`: a person's words for
/// it.
Change other_micro_batch(std::string what, std::int64_t micro, std::int64_t accumulation);

/// The first `count` blocks checkpointed, of a plan that checkpoints none.
Change first_blocks(std::int64_t count);

/// Other policies than all blocks or none, for jobs that do not fit.
std::vector<Change> finer_checkpointing(const Model& model, const Plan& plan);

/// Changes that make a job need less, of those that apply to `plan`.
std::vector<Change> lighter_changes(const Model& model, const Plan& plan);

/// Moves a plan to a ZeRO stage of DeepSpeed, with the stage's own defaults; a plan of another
/// framework keeps its precision where DeepSpeed has it.
void set_zero_stage(Plan& plan, int stage);

/// Generation with weights that stay on the host and stream through the GPUs (ZeRO-Inference).
void stream_weights(Plan& plan);

/// Puts the optimizer, and at stage 3 the parameters too, on the host or on NVMe.
void set_offload(Plan& plan, OffloadDevice optimizer, OffloadDevice parameters);

}  // namespace shardplan
