// Programs that one process runs in turn, as one: the models of reinforcement learning.
#pragma once

#include <functional>
#include <optional>

#include "program/program.h"

namespace shardplan {

/// Adds what `part` keeps between steps but libraries' workspaces, which a process has once.
void append_residents(Program& whole, const Program& part);

/// Of these what its steps leave to the next: tensors that an optimizer has left, which stay where
/// they are when the model itself goes to the host.
void append_left_tensors(Program& whole, const Program& part);

/// How many names the blocks and marks of `part` have: they are below it.
std::int32_t names_of(const Program& part);

/// Adds what `part` does, with all of its phases named `as`, or as they are. `after_forward`, if
/// given, may add to `whole` at the end of each forward phase. Names of blocks begin at
/// `first_name`: parts that hold blocks while others run need names of their own, because what a
/// part frees is the newest block of the name.
void append_events(Program& whole, const Program& part, std::optional<Phase> as,
                   const std::function<void()>& after_forward = nullptr,
                   std::int32_t first_name = 0);

}  // namespace shardplan
