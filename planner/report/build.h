// Lays out what was found: the report of a job, and of the difference between two.
#pragma once

#include "report/findings.h"
#include "report/report.h"

namespace shardplan::report {

Report job_report(const Findings& findings);

/// What changes in bytes and time when `after` is run instead of `before`.
Report difference_report(const Findings& before, const Findings& after);

}  // namespace shardplan::report
