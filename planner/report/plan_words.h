// A job in a few lines, for the command line and for windows: who runs it, how it is divided, and
// on how much at a time.
#pragma once

#include <vector>

#include "load/job.h"
#include "report/report.h"

namespace shardplan::report {

/// "LoRA of rank 16 on q_proj, v_proj, base in 4 bits"
Text method_words(const Workload& workload);

/// How a job trains or generates, how it is divided where it is, and its batch; of a job of several
/// models a line for each, and the batch.
std::vector<Cell> plan_words(const Job& job);

}  // namespace shardplan::report
