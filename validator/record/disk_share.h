// What share of a disk's own rate a run with states or parameters on it had.
#pragma once

#include <optional>
#include <string>

#include "estimate/estimate.h"
#include "launch/run.h"

namespace shardplan::validator {

/// Bytes a second of a node's disk.
struct DiskRate {
  double read = 0, write = 0;
  bool timed = false;  ///< by this run, before it began; the job's cluster says it otherwise
};

/// Of the time that a run's bytes would take one after the other at the disk's own rate.
struct DiskShare {
  double busy = 0;   ///< over the time in which anything was on its way
  double steps = 0;  ///< over all of the timed steps
};

/// None where neither the run nor its cluster says it.
std::optional<DiskRate> disk_rate(const EngineJob& job, const RunReport& report);
/// Of the ranks of the first node. None without states on NVMe, timed steps or a rate.
std::optional<DiskShare> disk_share(const EngineJob& job, const RunReport& report);
/// What is predicted of it over the steps, at the rate that the job's cluster says: the same bytes,
/// which are predicted too, and the predicted step. None without such a rate.
std::optional<double> predicted_disk_share(const EngineJob& job, const Estimate& predicted,
                                           const RunReport& report);
/// The shares as lines of a report; empty where there are none.
std::string disk_share_text(const EngineJob& job, const Estimate& predicted,
                            const RunReport& report);

}  // namespace shardplan::validator
