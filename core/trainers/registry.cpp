#include "trainers/registry.h"

#include <algorithm>
#include <array>

#include "plan/plan.h"

namespace shardplan {

// A line here and a row below for each; its file has the rest.
namespace loop {
extern const TrainerDescription kTrainer;
}
namespace hf_trainer {
extern const TrainerDescription kTrainer;
}
namespace trl {
extern const TrainerDescription kTrainer;
}
namespace axolotl {
extern const TrainerDescription kTrainer;
}
namespace torchtitan {
extern const TrainerDescription kTrainer;
}
namespace nemo_rl {
extern const TrainerDescription kTrainer;
}
namespace verl {
extern const TrainerDescription kTrainer;
}
namespace openrlhf {
extern const TrainerDescription kTrainer;
}

namespace {

constexpr std::array kTrainers{&loop::kTrainer,     &hf_trainer::kTrainer, &trl::kTrainer,
                               &axolotl::kTrainer,  &torchtitan::kTrainer, &verl::kTrainer,
                               &openrlhf::kTrainer, &nemo_rl::kTrainer};

}  // namespace

std::span<const TrainerDescription* const> trainers() {
  return kTrainers;
}

const TrainerDescription& default_trainer() {
  return loop::kTrainer;
}

const OptimizerDescription& optimizer_of(const TrainerDescription& trainer,
                                         const OptimizerDescription& optimizer) {
  const auto own = std::ranges::find(trainer.optimizers, &optimizer, &OwnOptimizer::named);
  return own == trainer.optimizers.end() ? optimizer : *own->runs;
}

}  // namespace shardplan
