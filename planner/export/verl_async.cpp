#include "export/verl_async.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "export/trainer_file.h"

namespace shardplan {
namespace {

/// Prompts that each engine has in work: it ends none of them at a hand-over, and no more than may
/// be behind are begun (fully_async_rollouter.py, set_max_required_samples).
std::int64_t prompts_of_engine(const RolloutEngine& engine, std::int64_t prompts) {
  const std::int64_t engines = *engine.gpus / engine.tensor_parallel;
  const std::int64_t each = checked_mul(engines, engine.completions);
  const std::int64_t most =
      checked_mul(checked_mul(prompts, engine.completions), 1 + engine.steps_off_policy);
  const std::int64_t asked = engine.answers_in_work;
  if (asked > most)
    refuse_export("workload.rollout.answers_in_work",
                  fmt::format("{} answers are more than may be behind", asked),
                  fmt::format("at most {}", most));
  if (asked < most && asked % each != 0)
    refuse_export("workload.rollout.answers_in_work",
                  fmt::format("each of {} engines has as many prompts of {} answers in work",
                              engines, engine.completions),
                  fmt::format("a multiple of {}", each));
  return ceil_div(asked, each);
}

}  // namespace

bool verl_is_asynchronous(const RolloutEngine& engine) {
  return !engine.at().shares_gpus &&
         (engine.steps_off_policy > 1 || engine.answers_in_work > 0 || engine.streams);
}

Json verl_async_training(const RolloutEngine& engine, std::int64_t prompts,
                         std::int64_t of_update) {
  if (prompts % of_update != 0)
    refuse_export(
        "workload.generation_batch",
        fmt::format("{} prompts are no multiple of the {} of an update", prompts, of_update),
        "a multiple");
  const bool limited = engine.answers_in_work > 0;
  const bool partial = limited && !engine.streams;
  Json block{{"staleness_threshold", engine.steps_off_policy},
             {"trigger_parameter_sync_step", prompts / of_update},
             {"require_batches", 1},
             {"partial_rollout", partial}};
  if (limited) block["concurrent_samples_per_replica"] = prompts_of_engine(engine, prompts);
  return block;
}

}  // namespace shardplan
