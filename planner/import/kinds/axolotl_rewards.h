// Training by rewards and preferences in axolotl, and models that judge.
#pragma once

#include "import/keys.h"

namespace shardplan::importing::axolotl {

void read_rl(Key& key);
void read_step_rewards(Key& key);
void read_reward(Key& key);
void read_vllm(Key& key);
void make_step_rewards(const Document& d, Recipe& recipe);

}  // namespace shardplan::importing::axolotl
