// Models on GPUs of their own beside a trainer's: a third group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimate/verdict.h"

namespace shardplan {

struct Calibration;
struct Rlhf;
struct RolesApart;
struct TimeEstimate;

/// What such a group needs of its fullest GPU, and what it does in an iteration.
struct ModelsApart {
  std::string names;  ///< "critic, reward"
  std::int64_t gpus = 0;
  Range device;  ///< bytes of one GPU
  std::int64_t usable_bytes = 0;
  Verdict verdict;
  double scores_seconds = 0, trains_seconds = 0;  ///< 0: unknown
};

ModelsApart estimate_apart(const Rlhf& rlhf, const RolesApart& group,
                           const Calibration& calibration);

/// They score while the trainer's GPUs do, and train while they train (OpenRLHF, trainer/
/// ppo_utils/experience_maker.py, make_experience; trainer/ppo_trainer.py, ppo_train; verl's
/// resource pools): the trainer's wait for the slowest of them.
void wait_for(TimeEstimate& time, const std::vector<ModelsApart>& groups);

}  // namespace shardplan
