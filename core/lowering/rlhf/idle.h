// Models that are on the host, whole or in part, while others work.
#pragma once

#include <cstdint>

#include "lowering/rlhf/lower.h"
#include "program/program.h"

namespace shardplan {

/// What a part needs of a role.
enum class Needed : std::uint8_t { everything, parameters };

/// Whether the role has what the event makes on the host while it is idle.
bool is_away(const Role& role, const Event& e);

/// Bytes of the states that a role brings along, workspaces and the batch left out.
std::int64_t state_bytes(const Program& program);

/// Of the parts of a role, the one whose residents are the role's: a training step, or for what is
/// frozen its only part.
bool brings_states(const RlhfPart& part);

/// What a part needs of a role and is away while that is idle comes at the beginning and goes at
/// the end, by way of the host's link. `states`: the part that has them as residents.
void bring(ProgramBuilder& b, const Program& states, const Role& role, Needed needed, bool there);

}  // namespace shardplan
