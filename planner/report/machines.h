// The table of machines as a report.
#pragma once

#include <string>
#include <vector>

#include "questions/machines.h"
#include "report/report.h"

namespace shardplan::report {

/// For each model and method the cheapest and the fastest machine, then every machine, then prices.
Report machines_report(const std::vector<MachineAnswer>& answers, const std::string& version);

}  // namespace shardplan::report
