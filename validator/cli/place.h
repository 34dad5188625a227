// Where a job's ranks run: all of them in this process, or the one that a launcher started.
#pragma once

#include "launch/run.h"

namespace shardplan::validator {

inline constexpr const char* kVersion = SHARDPLAN_VERSION;
inline constexpr const char* kCommit = SHARDPLAN_COMMIT;

/// A rank has a GPU of its own, or all share the one that is there. Throws DeviceError for other
/// numbers of GPUs than those, InputError for a launcher's world that is
/// not the job's.
Placement place(const EngineJob& job);

/// The workspace that the job's device would ask for, without the device.
WorkspaceRule dry_workspace(const EngineJob& job);

}  // namespace shardplan::validator
