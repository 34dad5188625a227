// Where a job's ranks run: all of them in this process, or the one that a launcher started.
#pragma once

#include <string>

#include "comm/patience.h"
#include "launch/run.h"

namespace shardplan::validator {

inline constexpr const char* kVersion = SHARDPLAN_VERSION;
inline constexpr const char* kCommit = SHARDPLAN_COMMIT;

/// What the command line says of other processes.
struct Company {
  std::string hosts;  ///< as read_hosts; empty: a launcher's variables, or this process alone
  std::string node;   ///< this machine's name in them
  Patience patience;
};

/// A rank has a GPU of its own, or all share the one that is there. Waits until the processes of
/// the run have met. Throws DeviceError for other numbers of GPUs than those, InputError for a
/// world that is not the job's or that contradicts itself, PeerFailure when others do not come.
Placement place(const EngineJob& job, const Company& company);

/// The workspace that the job's device would ask for, without the device.
WorkspaceRule dry_workspace(const EngineJob& job);

}  // namespace shardplan::validator
