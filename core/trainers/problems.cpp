#include "trainers/problems.h"

#include <fmt/format.h>

#include "frameworks/registry.h"
#include "kernels/registry.h"
#include "trainers/registry.h"

namespace shardplan {

std::optional<DivisionProblem> trainer_problem(const Plan& plan) {
  const TrainerDescription& trainer = *plan.trainer;
  if (&trainer == &default_trainer()) return std::nullopt;
  if (plan.workload.kind != WorkKind::train)
    return DivisionProblem{"trainer", fmt::format("{} is for training", trainer.words),
                           "no trainer, or workload.kind train"};
  const FrameworkTraits& framework = traits_of(plan);
  const UnderTrainer under = framework.under_trainer;
  const bool runs =
      under != UnderTrainer::never && (under != UnderTrainer::precision || trainer.runs_engines);
  if (runs) return std::nullopt;
  return DivisionProblem{
      "trainer", fmt::format("{} cannot run {}", trainer.words, std::string_view(framework.name)),
      fmt::format("framework fsdp2, fsdp1{}, or trainer {}",
                  trainer.runs_engines ? " or deepspeed" : "", default_trainer().name)};
}

std::optional<DivisionProblem> kernels_problem(const Plan& plan, std::string_view model_type) {
  if (!plan.kernels.any()) return std::nullopt;
  if (plan.workload.kind != WorkKind::train)
    return DivisionProblem{"kernels", "fused kernels are estimated for training alone", "torch"};
  if (traits_of(plan).under_trainer == UnderTrainer::never)
    return DivisionProblem{
        "kernels",
        fmt::format("Liger-Kernel is for the classes of transformers; {} has its own",
                    std::string_view(traits_of(plan).name)),
        "torch"};
  const bool fuses_head =
      (plan.kernels.names & bit_of(KernelName::fused_linear_cross_entropy)) != 0;
  if (plan.trainer->head_loss != nullptr && fuses_head)
    return DivisionProblem{"kernels",
                           fmt::format("{} refuses fused_linear_cross_entropy: it replaces the "
                                       "model's forward, which has its own fused head",
                                       plan.trainer->words),
                           "the other kernels; Liger's default list leaves it out there"};
  return kernel_problem(model_type, plan.kernels);
}

}  // namespace shardplan
