// What files of LLM Foundry and OLMo share: loops of their own under FSDP1 or DDP.
#pragma once

#include <string>
#include <string_view>

#include "json/document.h"
#include "plan/plan.h"

namespace shardplan {

/// Refuses what neither trains: another framework or trainer, degrees of a model's parts.
void check_fsdp1_loop(const Plan& plan, std::string_view trainer);

/// "amp_bf16", "amp_fp16" or "fp32"; refuses other presets.
std::string amp_word(const Plan& plan, std::string_view trainer);

/// "full_shard" as "FULL_SHARD".
std::string upper_word(std::string text);

/// torch.compile's arguments.
Json compile_block(const Plan& plan);

}  // namespace shardplan
