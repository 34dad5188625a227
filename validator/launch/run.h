// A job on the ranks of this process: planned by a dry run, then run for real.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "checkpoint/saver.h"
#include "device/dry_run.h"
#include "job/engine_job.h"
#include "launch/host_memory.h"
#include "launch/ranks.h"
#include "memory/arena.h"
#include "storage/rates.h"

namespace shardplan::validator {

/// Which ranks of the world live in this process, and what they run on.
struct Placement {
  int first_rank = 0;
  int count = 1;
  int world = 1;
  MakeRank make;
  WorkspaceRule workspace;             ///< for the dry run
  std::int64_t memory_limit = 0;       ///< bytes of the arena; 0: what the device has
  int ranks_per_device = 1;            ///< above 1: ranks share a device, its time and its memory
  int host_ranks = 1;                  ///< ranks of the world that share this host
  int host_index = 0;                  ///< of them, which the first one of this process is
  std::int64_t host_memory_limit = 0;  ///< bytes of a rank on its host; 0: what the host has
  std::shared_ptr<Lookout> lookout;    ///< over the run's processes; null: there is only this one
};

/// What a dry run of a rank allocates.
struct MemoryPlan {
  MemoryProfile device;
  std::int64_t extent = 0;  ///< of the device's arena
  HostBytes host;
  SavedBytes saved;  ///< of runs that save
};

struct RankReport {
  int rank = 0;
  std::string node;  ///< the name of its machine
  DeviceInfo device;
  MemoryProfile planned;   ///< of the dry run
  MemoryProfile measured;  ///< of the last step
  std::int64_t arena_bytes = 0;
  std::vector<Overhead> overheads;  ///< empty where ranks share the device
  std::int64_t device_bytes = 0;  ///< in use on the device during the run; 0: not this rank's alone
  HostBytes planned_host, host;   ///< of runs that offload: of the dry run, and as used
  std::int64_t host_growth = 0;   ///< how much more of the process lies in memory than before
  std::string host_compute;       ///< what updates there
  std::string storage;            ///< how states on NVMe are read and written; empty: none are
  StorageUse storage_use;         ///< from the first timed step on
  std::string direct;             ///< the same past the host's memory; empty: there is no such way
  StorageUse direct_use;
  StorageUse
      use_in_steps;  ///< of both: until the last timed step ended, whose update comes after it
  double step_seconds = 0;    ///< median of the timed steps
  double waited_seconds = 0;  ///< of it, for other ranks on the host; a GPU's waits do not count
  /// Of the last step that is not timed, whose phases wait for each other: forward, backward, step.
  /// Zeros without such a step.
  std::array<double, 3> phase_seconds{};
  SavedBytes planned_save;  ///< of runs that save: of the dry run
  SaveReport save;          ///< and the last checkpoint
};

struct RunReport {
  std::vector<RankReport> ranks;    ///< of this process, or once gathered of all, in order
  std::vector<StepResult> steps;    ///< of rank first_rank; losses are of all ranks
  int ranks_per_device = 1;         ///< as Placement's: above 1 no time is that of a rank
  std::optional<StorageRate> disk;  ///< of the folder of states on NVMe, where it was timed
  std::int64_t first_step = 0;  ///< steps that the checkpoint had made that the run went on from
};

/// What a rank of the job would allocate; throws OutOfMemory if that is more than `limit` bytes.
MemoryPlan plan_memory(const EngineJob& job, int rank, int world, const WorkspaceRule& workspace,
                       std::int64_t limit);

/// The rank of all that allocates most, the first of equals: stages of a pipeline differ.
struct FullestRank {
  int rank = 0;
  MemoryPlan plan;
};
FullestRank plan_fullest_rank(const EngineJob& job, int world, const WorkspaceRule& workspace,
                              std::int64_t limit);

/// A step of rank first_rank that has just ended.
struct StepProgress {
  std::int64_t index = 0;  ///< from 0
  const StepResult& result;
  std::int64_t peak_bytes = 0;  ///< the most that the rank's arena held during the step
  std::int64_t live_bytes = 0;  ///< what it holds after it
};
using OnStep = std::function<void(const StepProgress&)>;
using OnSave = std::function<void(const SaveReport&)>;

/// What a run tells while it runs, on one rank's thread.
struct RunWatch {
  OnStep stepped;  ///< after each step
  OnSave saved;    ///< after each checkpoint
};

/// Steps, timed ones too, are counted from the checkpoint that the job goes on from.
RunReport run_job(const EngineJob& job, const Placement& placement, const RunWatch& watch);

}  // namespace shardplan::validator
