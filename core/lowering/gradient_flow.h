// Where gradients flow among the segments of a network: what is frozen, what is told to need one.
#pragma once

#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "program/tape.h"

namespace shardplan {

/// What comes to a segment.
struct Incoming {
  DType stream{};          ///< the type of its chained input
  bool needs_grad = true;  ///< of that
  /// The segment's output is told to need a gradient, whatever trains before it.
  bool told = false;
  /// The segment before where it is checkpointed, in the same compiled graph; else nullptr.
  const Segment* again = nullptr;
  /// What reads its output is computed again in the same compiled graph.
  bool feeds_checkpoint = false;
  /// Nothing before the blocks trains, and they are told to need a gradient.
  bool leaf = false;
  /// TapeOptions::scattered_operands
  std::int64_t scattered_operands = 0;
  /// What of Model::shared has a gradient, as far as it has been made.
  const std::vector<bool>* shared_trains = nullptr;
};

/// Nothing before the segment's output trains: its segments are embeddings only.
bool frozen_output(const Model& model, const Segment& segment);

/// Whether autograd makes no graph of the segment: nothing that it reads needs a gradient.
bool has_no_graph(const Model& model, const Segment& segment, const Incoming& in);

/// Whether the output of segment `index` is told to need a gradient: by transformers'
/// enable_input_require_grads, which gradient_checkpointing_enable calls and which finds the
/// embeddings of the text and of the tower (modeling_utils.py, transformers 5), so that a frozen
/// tower is checkpointed and run again too, unless a bridge runs it (Segment::whole); by a trainer
/// that calls it for adapters; or by DeepSpeed's stage-3 linear, where a block has adapters.
bool is_told(const Model& model, const Plan& plan, const Regime& regime, std::size_t index);

/// Notes in `trains`, by Model::shared, whether what segment `index` shares has a gradient, once it
/// has run. `told`: as of Incoming.
void note_shared(const Model& model, std::size_t index, const TapeRun& tape, bool told,
                 std::vector<bool>& trains);

}  // namespace shardplan
