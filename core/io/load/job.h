// A job (shardplan.job/1) to the model and the plan it asks for.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "hardware/catalog.h"
#include "json/document.h"
#include "load/ds_config/auto_values.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

struct Job {
  Model model;
  Plan plan;
  std::vector<Diagnostic> diagnostics;  ///< warnings and notes; errors are thrown
  std::vector<std::string> assumed;     ///< what the job left open, and what was taken
  Json ds_config;                       ///< as it was given; null without one
  std::vector<ResolvedAuto> autos;      ///< "auto" values of its ds_config
};

/// What a job means beside its own text.
struct JobContext {
  const HardwareCatalog* hardware = nullptr;
  std::string directory;  ///< relative paths in the job start here; "" for the current one
};

/// Throws InputError naming `file` and the key. Absent keys take the defaults of docs/job.md.
Job load_job(const Json& job, const std::string& file, const JobContext& context);

}  // namespace shardplan
