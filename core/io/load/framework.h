// The `framework` of a job.
#pragma once

#include "json/reader.h"
#include "load/ds_config/document.h"
#include "load/job.h"

namespace shardplan {

/// What a framework decides about the rest of the plan: a ds_config sets the precision, the batch,
/// the optimizer and clipping unless the job does.
struct FrameworkRead {
  Framework framework;
  Json ds_config;                             ///< null unless the framework is deepspeed
  std::string ds_file;                        ///< names it in messages
  std::optional<KernelInjection> injection;   ///< DeepSpeed-Inference over all GPUs
  std::optional<AutoResolver> auto_resolver;  ///< where the job says who resolves "auto"
  DsText text = DsText::plain;                ///< of the ds_config's file
  bool has_path = false;                      ///< the ds_config is a file of its own
  bool from_file =
      false;  ///< the user gave a ds_config, so absent blocks mean DeepSpeed's defaults
};

/// Reads everything but the ds_config's meaning, which depends on the model. `world` decides the
/// default: plain PyTorch on one GPU, ZeRO-3 on several.
FrameworkRead read_framework(ObjectReader& job, std::int64_t world, const JobContext& context,
                             std::vector<std::string>& assumed);

}  // namespace shardplan
