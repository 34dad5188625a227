// What a job says about a model under DeepSpeed that no ds_config does.
#pragma once

#include <optional>

#include "json/reader.h"
#include "load/job.h"

namespace shardplan {

/// `framework.moe`: what layers of deepspeed.moe.layer.MoE are given beside the model's own
/// numbers.
std::optional<DeepSpeedMoe> read_moe(ObjectReader& framework);

/// Throws for what deepspeed.checkpointing refuses; a warning where the ds_config's block reaches
/// nothing.
std::optional<Diagnostic> check_deepspeed_checkpointing(const ObjectReader& job, const Job& read);

/// Why stage 0 takes more with an "optimizer" in the file than without one, where it does.
std::optional<Diagnostic> about_flat_gradients(const ObjectReader& job, const Job& read);

}  // namespace shardplan
