// Programs that one process runs in turn, as one: the models of reinforcement learning.
#pragma once

#include <functional>
#include <optional>

#include "program/program.h"

namespace shardplan {

/// Adds what `part` keeps between steps but workspaces, which a process has once.
void append_residents(Program& whole, const Program& part);

/// Adds what `part` does, with all of its phases named `as`, or as they are. `after_forward`, if
/// given, may add to `whole` at the end of each forward phase. Names of blocks are left as they
/// are: what a part frees is the newest block of the name, which is its own.
void append_events(Program& whole, const Program& part, std::optional<Phase> as,
                   const std::function<void()>& after_forward = nullptr);

}  // namespace shardplan
