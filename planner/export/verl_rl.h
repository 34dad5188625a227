// Jobs of several models as verl's main_ppo reads them.
#pragma once

#include <string>

#include "export/export.h"

namespace shardplan {

/// verl.yaml over ppo_trainer.yaml or ppo_megatron_trainer.yaml. Throws InputError for what verl
/// has no key of.
std::string verl_rl_yaml(const Json& asked, const Job& job, const Estimate& estimate);

}  // namespace shardplan
