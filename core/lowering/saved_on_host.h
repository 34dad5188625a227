// What is kept for the backward pass and waits on the host: copies, and what a pass leaves to the
// one behind it while they are under way.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan::detail {

/// Emits a copy of what is kept to the host or back, or who waits for it.
void emit_copy(ProgramBuilder& b, const TapeEvent& copy);
/// Frees what was left up to `place`.
void drain(ProgramBuilder& b, std::vector<TailedFree>& pending, std::int64_t place);
/// A pass is over that hooks saw so many tensors of; it leaves its tail.
void leave(std::vector<TailedFree>& pending, const std::vector<TailedFree>& tail,
           std::int64_t hooked);
/// Inputs of checkpointed blocks, `input_bytes` each, that are still sent while later blocks run.
std::vector<TailedFree> inputs_being_sent(const Plan& plan, const Segment& segment,
                                          std::int64_t input_bytes);

}  // namespace shardplan::detail
