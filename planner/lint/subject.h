// What the linter's own checks look at: the configuration as it was read, what it is used with, and
// the job's estimate where model and machine are known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lint/priced_job.h"
#include "load/accelerate.h"
#include "load/ds_config/context.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/load.h"
#include "load/ds_config/values.h"
#include "load/training_arguments.h"

namespace shardplan {

struct LintSubject {
  const Json& document;  ///< as it is written
  const DsConfigResult& config;
  DsValues values;  ///< of config.checked
  const DsConfigContext& context;
  bool version_given = false;                    ///< the user named DeepSpeed's version
  const AccelerateConfig* accelerate = nullptr;  ///< nullptr: not given
  const TrainingArguments* arguments = nullptr;
  const Model* model = nullptr;
  const Cluster* cluster = nullptr;
  const PricedJob* priced = nullptr;  ///< model and machine are known, the file has no errors

  bool trainer() const { return arguments != nullptr; }
};

/// The findings of every file that takes part.
struct LintFindings {
  DsFindings config;
  DsFindings accelerate;
  DsFindings arguments;
};

}  // namespace shardplan
