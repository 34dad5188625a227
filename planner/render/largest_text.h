// The answer of `shardplan max`.
#pragma once

#include <string>
#include <string_view>

#include "load/job.h"
#include "questions/largest.h"

namespace shardplan {

/// `of` is what was asked for: micro_batch, sequence_length, parameters or gpus.
std::string largest_text(std::string_view of, const LargestResult& result, const Job& job);

}  // namespace shardplan
