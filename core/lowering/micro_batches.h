// Gradient accumulation in a step program.
#pragma once

#include <cstdint>

#include "program/program.h"

namespace shardplan {

/// Calls emit(last) for the micro-batches of one step: the first one on its own, because gradients
/// do not exist yet, those between as one repetition, and the last one, which synchronises.
template <typename Emit>
void emit_micro_batches(ProgramBuilder& b, std::int64_t count, Emit&& emit) {
  emit(count == 1);
  if (count == 1) return;
  if (count > 2) {
    b.begin_repeat(count - 2);
    emit(false);
    b.end_repeat();
  }
  emit(true);
}

}  // namespace shardplan
