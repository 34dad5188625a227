// A run of several processes: what they tell each other at its end, good or bad.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/lookout.h"
#include "launch/run.h"

namespace shardplan::validator {

/// Where processes leave what a run failed of, beside the record that would have been written.
struct FailureReport {
  std::string record;  ///< its path; empty: none is left
  std::string command;
};

/// Calls `body`; what it throws is told the other processes of `lookout` (null: there are none),
/// written to RECORD.failure.json by the first process, or RECORD.rankN.failure.json by others that
/// have lost it, and thrown here. A PeerFailure then says which rank was lost, and how.
void run_together(const std::shared_ptr<Lookout>& lookout, const FailureReport& place,
                  const std::function<void()>& body);

/// A process other than the first has done its part: waits until the record is written.
void await_end(Lookout& lookout, int first_rank, int count, std::int64_t steps);

}  // namespace shardplan::validator
