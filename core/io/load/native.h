// What a job may ask of the native engine.
#pragma once

#include "json/reader.h"
#include "plan/plan.h"

namespace shardplan {

/// Throws InputError naming what the engine cannot do: another optimizer than AdamW, autocast,
/// LoRA, eager attention. Which networks it runs is the lowering's to say.
void check_native(const ObjectReader& job, const Plan& plan);

}  // namespace shardplan
