// Fitted constants of a machine and framework version: what the allocator does not count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "estimate/anchor.h"
#include "estimate/margins.h"
#include "estimate/nccl_memory.h"
#include "frameworks/registry.h"
#include "plan/plan.h"
#include "timing/measured_host.h"
#include "timing/rates.h"

namespace shardplan {

/// What the resident memory of a process grows by beside what it allocates on its host.
struct HostGrowth {
  std::int64_t products_bytes = 0;
  std::int64_t attention_bytes = 0;  ///< with fused attention
  std::int64_t rank_bytes = 0;       ///< then, for each further rank of the process
  std::int64_t direct_bytes = 0;     ///< more, with the library that moves files to GPUs and back
};

/// What a process holds of a GPU beside the memory that its allocator hands out.
struct ProcessOverhead {
  std::int64_t context_bytes = 0;          ///< CUDA context, modules and library handles
  std::int64_t attention_bytes = 0;        ///< of it, with cuDNN's fused attention
  std::int64_t foreign_context_bytes = 0;  ///< a context of another GPU's process
  NcclOverhead nccl;
  double upper = 1.0;  ///< upper bound over point
  HostGrowth host;
};

/// Features of jobs (confirmed.h) that measured runs of a framework had, their tensors' bytes being
/// those that were counted.
struct Confirmed {
  std::string framework;
  std::vector<std::string> features;
};

/// Applies to GPUs of `arch`; on others the same values are used and shown as assumed.
struct Calibration {
  std::string name;                   ///< "h200-pytorch-2.11"
  std::string arch;                   ///< "Hopper"
  std::string runtime;                ///< what its GPUs ran: "CUDA"
  std::string collectives;            ///< "NCCL"
  ProcessOverhead pytorch;            ///< of every framework built on PyTorch
  ProcessOverhead native;             ///< of our own engine
  double reserved_ratio = 1.0;        ///< without simulation: reserved over allocated, typical
  double reserved_ratio_upper = 1.0;  ///< and at most
  TimeRates time;
  std::optional<MeasuredHost> host;  ///< of the machine that `time` was fitted on
  bool host_is_asked = false;        ///< `host` was measured where the job is to run
  std::optional<Anchor> anchor;      ///< what `time` was corrected by
  std::vector<std::string> records;  ///< what it was fitted on
  std::vector<Margin> margins;       ///< one for all frameworks in every regime, at least
  ScarceMargin scarce;
  std::vector<std::string> margin_records;  ///< runs that the margins are quantiles of
  std::vector<StepError> step_errors;       ///< of all measured steps, by kind; in no calculation
  std::vector<Confirmed> confirmed;         ///< by framework

  const ProcessOverhead& overhead_of(FrameworkKind kind) const {
    return this->*traits_of(kind).process.get();
  }
};

}  // namespace shardplan
