// A job (shardplan.job/1) to the model and the plan it asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "hardware/catalog.h"
#include "json/document.h"
#include "load/ds_config/auto_values.h"
#include "lowering/rlhf/roles.h"
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
  /// Kind rlhf: all models, of which `model` and `plan` are the first one's.
  std::optional<Rlhf> rlhf;
};

/// What a job means beside its own text.
struct JobContext {
  const HardwareCatalog* hardware = nullptr;
  std::string directory;  ///< relative paths in the job start here; "" for the current one
  LossKind loss = LossKind::cross_entropy;  ///< what stands in place of the cross-entropy
  bool whole_logits = false;  ///< whatever the trainer fuses with the head: all logits are made
  EntropyKind entropy = EntropyKind::none;
  std::int64_t sequences = 1;  ///< of what its trainer counts as one sample: two of a pair
  bool scalar_head = false;    ///< the model ends in one value a token (a critic, a reward model)
};

/// Throws InputError naming `file` and the key. Absent keys take the defaults of
/// docs/reference/job.md.
Job load_job(const Json& job, const std::string& file, const JobContext& context);

}  // namespace shardplan
