// The rates that measured steps of each framework are fitted to.
#pragma once

#include "frameworks/planning.h"

namespace shardplan {

extern const StepFit kDdpSteps, kFsdp2Steps, kDeepSpeedSteps, kMegatronSteps;

}  // namespace shardplan
