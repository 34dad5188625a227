// What a simulated step spends its time on.
#pragma once

#include <string>
#include <vector>

#include "render/trace.h"

namespace shardplan {

/// Where the time goes, and the kinds of kernels, collectives and copies that take most of it.
std::string simulation_text(const SimulatedRank& rank);

/// The same of every rank, for programs.
Json simulation_json(const std::vector<SimulatedRank>& ranks);

}  // namespace shardplan
