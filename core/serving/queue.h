// Requests of one length that pass through an engine: while they keep coming, and so many that wait
// at the start. docs/explanation/serving.md derives the sums.
#pragma once

#include "plan/plan.h"
#include "serving/answer_lengths.h"
#include "serving/engine_pass.h"

namespace shardplan {

/// Pass after pass, as many prompts begin as answers end.
struct SteadyState {
  double decoding = 0;       ///< sequences that get a token in a pass
  double prompt_tokens = 0;  ///< of a pass, in the mean
  double taken = 0;          ///< of a pass that takes prompts
  double share = 0;          ///< of passes that take prompts
  EnginePassTime pass;       ///< in the mean
};

/// `sequences` are there at once. A prompt is taken in whole where a pass has room for it, so that
/// some passes take prompts and others none (vllm/v1/core/sched/scheduler.py, schedule). Where
/// passes have no room for that many, prompts decide how many sequences decode, and the others wait
/// for theirs.
SteadyState steady_state(const ServedNetwork& network, const Plan& plan, double sequences);

/// All passes from the first token of `together` answers that begin together, to prompts of so many
/// tokens, to the end of the longest of `of_all`: fewer and fewer run.
EnginePassTime ending_passes(const ServedNetwork& network, const AnswerLengths& lengths,
                             double together, double of_all, double prompt);

/// From the first pass to the last token of so many requests, all of which wait at the start.
double queue_seconds(const ServedNetwork& network, const Plan& plan, double sequences,
                     double requests);

}  // namespace shardplan
