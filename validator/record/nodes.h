// Every rank of a run, node by node.
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "launch/run.h"

namespace shardplan::validator {

/// A table for people: node, rank, device, peak of memory as predicted, planned and measured, time
/// of a step with and without waiting; then the rank that others wait for. `report` has all ranks.
/// The prediction is of the fullest rank: where ranks differ, those that plan less have none.
std::string nodes_text(const Estimate& predicted, const RunReport& report);

/// The same for programs: {"ranks": [...], "slowest_rank": n}.
Json nodes_json(const Estimate& predicted, const RunReport& report);

}  // namespace shardplan::validator
