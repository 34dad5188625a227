// The `precision` of a job: a preset or an object of dtypes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/reader.h"
#include "plan/precision.h"

namespace shardplan {

/// fp32, bf16-pure, fp16-pure, bf16-autocast, fp16-autocast, bf16-master or fp16-master.
Precision precision_preset(std::string_view name);
std::vector<std::string> precision_names();

/// Reads `precision` of `job`; `fallback` is the preset of a job that does not say.
Precision load_precision(ObjectReader& job, std::string_view fallback);

}  // namespace shardplan
