// The ds_config against accelerate's YAML, and accelerate's against itself.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::accelerate {

inline constexpr std::string_view kConfig = "accelerate: commands/config/config_args.py";
inline constexpr std::string_view kPlugin = "accelerate: utils/dataclasses.py DeepSpeedPlugin";

/// accelerate's file where it starts DeepSpeed, or says nothing of what it starts; or nullptr.
const AccelerateConfig* deepspeed_launch(const LintSubject& s);

/// The same, with a mixed_precision of fp16 or bf16 that counts.
const AccelerateConfig* mixed_launch(const LintSubject& s);

// The rules, one file each.
Rule yaml_syntax();
AccelerateRule unknown_key();
AccelerateRule unknown_deepspeed_key();
AccelerateRule wrong_type();
AccelerateRule no_distributed_type();
LintRule processes();
LintRule uneven_machines();
LintRule fsdp_no_wrap();
LintRule not_deepspeed();
LintRule beside_config_file();
LintRule mixed_precision();
LintRule trainer_precision();
LintRule other_config();
LintRule zero3_init();
LintRule accumulation();

// In the order in which they are checked, and listed.
std::span<const AccelerateRule> of_file();
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::accelerate
