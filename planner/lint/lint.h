// `shardplan lint`: what is wrong with a ds_config, alone and beside accelerate's file and HF
// Trainer's arguments, and what its keys cost.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/said.h"
#include "estimate/calibration.h"
#include "hardware/catalog.h"
#include "lint/costs.h"
#include "lint/source_text.h"
#include "load/ds_config/auto_values.h"
#include "load/ds_config/context.h"
#include "load/ds_config/rule.h"

namespace shardplan {

struct LintRequest {
  /// Absent: accelerate's file makes the ds_config.
  std::optional<SourceText> config;
  std::optional<SourceText> accelerate;
  std::optional<SourceText> arguments;
  /// A shardplan.job/1 or a part of one: the model, the cluster, the workload, and DeepSpeed's
  /// version and who resolves "auto" under "framework".
  Json job = Json::object();
  std::string directory;  ///< relative paths of the job start here
  const HardwareCatalog* hardware = nullptr;
  const Calibration* calibration = nullptr;
};

struct LintFinding {
  Diagnostic diagnostic;  ///< with rule and position
  const Rule* rule = nullptr;
  std::vector<Edit> edits;  ///< of the ds_config; empty: a person must choose
};

struct LintReport {
  std::vector<LintFinding> findings;  ///< by file, then by place
  std::vector<ResolvedAuto> autos;
  AutoResolver resolver = AutoResolver::none;
  DeepSpeedVersion version;
  /// What the keys cost; empty, with the reason, when nothing was estimated.
  std::vector<KeyCost> costs;
  Said not_priced;
  std::optional<Priced> now;
  std::string subject;               ///< "llama-2-7b on 4xA100-40GB", when it was estimated
  std::vector<std::string> assumed;  ///< by the estimate
  Json fixed;  ///< the ds_config with all edits; null when it could not be read

  int count(Severity severity) const;
};

/// Throws InputError for what is not about the three files: an unknown model, a job that
/// contradicts the ds_config.
LintReport lint(const LintRequest& request);

/// The ds_config with all repairs, and with those of what they bring up: a misspelt key that is
/// deprecated is renamed first and moved then. `first`: the request's report. Null when the file
/// could not be read. What it gives was linted again: throws InputError where there would be more
/// errors than before.
Json repaired(const LintRequest& request, const LintReport& first);

}  // namespace shardplan
