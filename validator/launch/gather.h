// The reports of all processes of a run, brought together.
#pragma once

#include "comm/lookout.h"
#include "launch/run.h"

namespace shardplan::validator {

/// Everything of a rank's report, as it goes to another process and back.
Json json_of(const RankReport& report);
RankReport rank_report_of(const Json& report);

/// Every process calls it. At the first, `report` has the ranks of all, in order, afterwards.
/// Throws PeerFailure.
void gather_reports(Lookout& lookout, RunReport& report);

}  // namespace shardplan::validator
