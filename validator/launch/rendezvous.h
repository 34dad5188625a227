// How the processes of a run that a launcher started find each other.
#pragma once

#include <cstddef>
#include <span>

#include "launch/environment.h"
#include "launch/ranks.h"

namespace shardplan::validator {

/// Rank 0's bytes become everybody's.
void share_bytes(const Environment& environment, std::span<std::byte> bytes);

/// This process's rank on the host.
MakeRank host_process_rank(const Environment& environment);

}  // namespace shardplan::validator
