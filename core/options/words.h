// What people read about an option: for help texts, docs/reference/job.md and windows.
#pragma once

#include <string>

#include "options/option.h"

namespace shardplan {

/// "fp32, bf16 or fp16"
std::string in_words(std::span<const NamedValue> choices);

/// "type in which gradients are reduced: fp32, bf16 or fp16"
std::string help_of(const OptionInfo& option);

/// The value as a person writes it: "true", "2,048", "q_proj, v_proj"; "" for none.
std::string in_words(const OptionInfo& option, const OptionValue& value);

/// One table in Markdown: key, flag, meaning, default.
std::string markdown_of(const OptionGroup& group);

}  // namespace shardplan
