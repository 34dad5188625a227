// What the windows show of a job: the same calls as the command line's, and their results as
// values.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "estimate/estimate.h"
#include "hardware/catalog.h"
#include "json/document.h"
#include "load/job.h"
#include "simulator/timeline.h"

namespace shardplan::gui {

/// What every question needs and no job changes.
struct Workbench {
  HardwareCatalog hardware;
  Calibration calibration;
};
Workbench load_workbench();

/// A job that is complete has `job` and `estimate`; of one that is not, whatever can be known.
struct Answer {
  std::optional<Job> job;
  std::optional<Estimate> estimate;
  std::vector<Estimate> ranks;  ///< where GPUs hold different parts: of each kind of them
  std::shared_ptr<const MemoryTimeline> timeline;  ///< with an estimate: of its program
  std::optional<Cluster> cluster;                  ///< where there is no job
  std::optional<Model> model;                      ///< where there is no job
  std::optional<Diagnostic> error;                 ///< why there is no job

  const Cluster* the_cluster() const;
  const Model* the_model() const;
};

/// `directory`: where relative paths in the job start. Throws nothing but what memory does.
Answer answer(const Json& job, const std::string& file, const std::string& directory,
              const Workbench& workbench);

}  // namespace shardplan::gui
