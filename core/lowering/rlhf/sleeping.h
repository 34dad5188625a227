// An engine that sleeps on the trainer's GPU gives its memory back to the driver, and the trainer
// gives back what it has cached before the engine wakes (vllm/device_allocator/cumem.py, sleep; TRL
// 1.16, generation/vllm_generation.py, sync_weights). One allocator never has both: what is
// reserved is that of the iteration without the engine's turn, or of that turn alone, whichever is
// more.
#pragma once

#include <vector>

#include "program/program.h"

namespace shardplan {

/// The two, from the program of an iteration (lower_rlhf) whose engine wakes in its generation.
std::vector<Program> turns_apart(const Program& iteration);

}  // namespace shardplan
