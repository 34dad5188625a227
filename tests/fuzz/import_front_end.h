// What the fuzzer of imports calls, as front_ends.h has it for the others.
#pragma once

#include <string_view>

namespace shardplan {

/// A trainer's file, whatever it is written in, to its job, with model and cluster given.
void run_import(std::string_view text);

}  // namespace shardplan
