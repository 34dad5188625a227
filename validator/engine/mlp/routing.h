// What the layers of experts of a run have in common: the ranks that divide them, room for rows on
// their way, and what routers count.
#pragma once

#include "engine/mlp/mlp.h"
#include "engine/network.h"

namespace shardplan::validator {

class Routing {
 public:
  /// `spec`: of this rank's part, with experts. `drops`: whether a full expert takes no more rows.
  Routing(Runtime& runtime, const DecoderSpec& spec, const ExpertSlots& slots, DType dtype,
          bool drops);

  const ExpertRanks& ranks() const { return ranks_; }
  const RouterTally& tally() const { return tally_; }
  Tensor dropped() const { return tally_.dropped; }
  double idle_experts() const { return idle_.mean(); }

  void begin_step(Runtime& runtime);
  void begin_micro_batch(Backend& device, const MicroBatch& micro);
  /// After the last router of a micro-batch: adds their load-balancing loss, which the backward
  /// pass reads too.
  void end_micro_batch(Runtime& runtime, const Tensor& loss);

 private:
  /// The load-balancing loss of a micro-batch (Switch, arXiv 2101.03961), over all layers together
  /// as transformers has it: experts · Σ of their shares of the assignments and of the
  /// probabilities. It counts as often as the micro-batch has tokens, those of all ranks that share
  /// it.
  float balance_scale() const;

  ExpertsSpec experts_;
  ExpertSlots slots_;
  std::int64_t layers_, hidden_;
  int tensor_, context_;  ///< ranks that share layers, and sequences: each with some of the rows
  DType dtype_;
  ExpertRanks ranks_;
  RouterTally tally_;
  IdleExperts idle_;
  Event counted_;
};

}  // namespace shardplan::validator
