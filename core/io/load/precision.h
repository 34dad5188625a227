// The `precision` of a job: a preset or an object of dtypes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/reader.h"
#include "plan/plan.h"
#include "plan/precision.h"

namespace shardplan {

/// fp32, bf16-pure, fp16-pure, bf16-autocast, fp16-autocast, bf16-master or fp16-master.
Precision precision_preset(std::string_view name);
std::vector<std::string> precision_names();

/// Reads `precision` of `job`; `fallback` is the preset of a job that does not say.
Precision load_precision(ObjectReader& job, std::string_view fallback);

/// The preset that a plan trains in where its job says none. Nothing updates what LoRA freezes: 16
/// bits, where the framework takes adapters in fp32 beside. Packed weights that are divided are
/// stored as 16 bits, and FSDP1 flattens parameters of one type alone: people have the rest in 16
/// bits too (answer.ai's fsdp_qlora, --precision bf16).
std::string_view training_precision(const Plan& plan);

/// The same preset in fp16 where a GPU has no bf16 units (T4, V100): what people run there.
std::string_view on_this_gpu(std::string_view preset, const Gpu& gpu);

}  // namespace shardplan
