// A training log where a configuration is asked for: what it says, and which command reads it.
#pragma once

#include <string>
#include <string_view>

namespace shardplan::logs {

/// Throws InputError where `text` is the log of a run: of one that ran out of GPU memory, with
/// what PyTorch says of it, or of one with steps in it. JSON is none.
void refuse_log(std::string_view text, const std::string& file);

/// Throws InputError where `text` is the log of a run that ran out of GPU memory.
void refuse_out_of_memory(std::string_view text, const std::string& file);

}  // namespace shardplan::logs
