// The ds_config against HF Trainer's arguments, and the arguments by themselves.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::trainer {

inline constexpr std::string_view kOptimizer =
    "transformers: integrations/deepspeed.py deepspeed_optim_sched";

// The rules, one file each.
ArgumentsRule wrong_type();
ArgumentsRule misspelt_argument();
ArgumentsRule fp16_and_bf16();
LintRule adafactor_with_optimizer();
LintRule optim_unused();
LintRule scheduler_unused();
LintRule checkpointing_block();
LintRule other_config();

// In the order in which they are checked, and listed.
std::span<const ArgumentsRule> of_file();
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::trainer
