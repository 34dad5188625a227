// What the linter's own rules look at: the configuration as it was read, what it is used with, and
// the job's estimate where model and machine are known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lint/costs.h"
#include "lint/priced_job.h"
#include "load/accelerate.h"
#include "load/ds_config/context.h"
#include "load/ds_config/document.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/load.h"
#include "load/ds_config/rule.h"
#include "load/ds_config/values.h"
#include "load/training_arguments.h"

namespace shardplan {

struct LintSubject {
  const std::string& file;  ///< of the ds_config, as findings name it
  const Json& document;     ///< as it is written
  const DsConfigResult& config;
  DsValues values;  ///< of config.checked
  const DsConfigContext& context;
  bool version_given = false;                    ///< the user named DeepSpeed's version
  const AccelerateConfig* accelerate = nullptr;  ///< nullptr: not given
  const TrainingArguments* arguments = nullptr;
  const Model* model = nullptr;
  const Cluster* cluster = nullptr;
  const PricedJob* priced = nullptr;  ///< model and machine are known, the file has no errors
};

/// A job that could be estimated.
struct PricedSubject {
  const PricedJob& job;
  const DsValues& values;
};

/// Found by the linter alone: beside the other files, the model and the machine.
using LintRule = CheckedRule<LintSubject>;
/// Found with an estimate, and often with others of changed jobs.
using PricedRule = CheckedRule<PricedSubject>;
/// Found when the keys are priced, which comes last.
using KeyCostRule = CheckedRule<KeyCost>;
/// The text of the ds_config, as its readers take it.
struct TextSubject {
  DsText text = DsText::plain;
};

/// Found in the text of the ds_config, where it is no plain JSON.
using TextRule = CheckedRule<TextSubject>;
/// Found in a companion file by itself, whether or not the ds_config can be read.
using AccelerateRule = CheckedRule<AccelerateConfig>;
using ArgumentsRule = CheckedRule<TrainingArguments>;

}  // namespace shardplan
