// The rollout engine of a workload of kind rlhf.
#pragma once

#include <optional>

#include "base/diagnostic.h"
#include "json/reader.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

/// The block `rollout` of a workload whose prompts and answers have so many tokens; nothing without
/// one.
std::optional<RolloutEngine> read_rollout(ObjectReader& workload, std::int64_t prompt,
                                          std::int64_t answer);

/// What the engine holds, for people. Throws InputError where it cannot start: a degree that
/// divides no heads, too small a share for one sequence.
Diagnostic check_rollout(ObjectReader& workload, const Rlhf& rlhf);

/// Sleep makes room for others on the same GPUs: a warning where there are none.
std::optional<Diagnostic> sleeps_for_nobody(const Rlhf& rlhf);

/// The block `engine` of the model that judges answers, which has one; sequences of its own length
/// where it says one, else of `sequence` tokens.
RolloutEngine read_judge(ObjectReader& reward, std::int64_t sequence);
/// Two engines that stay awake on the same GPUs have room beside each other. `reward`: the model
/// that the second one runs.
void check_both_awake(ObjectReader& reward, const RolloutEngine& rollout,
                      const RolloutEngine& judge);
/// As check_rollout.
Diagnostic check_judge(ObjectReader& reward, const Judge& judge);

}  // namespace shardplan
