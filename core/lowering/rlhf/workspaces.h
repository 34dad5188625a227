// When libraries ask for their workspaces in an iteration of several models.
#pragma once

#include <vector>

#include "program/program.h"

namespace shardplan {

/// Each workspace is made once: by the first part of `whole` whose first step asks for it, and by
/// no later one; what none asks for is there from the start. `libraries`: all of them. Does nothing
/// where it is not said how the models are built.
void make_workspaces_once(Program& whole, std::vector<Event> libraries);

}  // namespace shardplan
