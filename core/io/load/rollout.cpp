#include "load/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/format.h"
#include "load/engine.h"
#include "load/engine_degree.h"
#include "options/tables.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// Ranks that an engine can have (workload.rollout.tensor_parallel).
constexpr std::int64_t kLargestEngine = 1 << 10;

/// An engine as a block of `reader` has it, and what it is asked of.
struct Asked {
  ObjectReader& reader;
  std::string_view block;
  const RolloutEngine& engine;
  const Model& model;
  const Plan& plan;
  bool timed = true;  ///< the time of its passes is estimated

  /// The reader has no place in the block: errors name its keys all the same.
  [[noreturn]] void refuse(const char* key, Said message, Said expected) const {
    reader.fail(fmt::format("{}.{}", block, key), std::move(message), std::move(expected));
  }
};

/// GPUs of its own and answers ahead of training want an engine that has them.
void check_place(const Asked& asked) {
  const RolloutEngine& engine = asked.engine;
  if (engine.at().shares_gpus && engine.gpus)
    asked.refuse(
        "gpus",
        fmt::format("{}: an engine on the trainer's GPUs has none of its own", *engine.gpus),
        "none, or placement separate");
  if (!engine.at().can_run_ahead && engine.steps_off_policy > 0)
    asked.refuse("steps_off_policy",
                 fmt::format("{}: an engine on the trainer's GPUs does not answer while they train",
                             engine.steps_off_policy),
                 "0, or placement separate");
  if (!engine.streams) return;
  if (engine.at().shares_gpus)
    asked.refuse("streaming", "an engine on the trainer's GPUs does not answer while they train",
                 "false, or placement separate");
  if (engine.steps_off_policy > 0)
    asked.refuse("streaming",
                 fmt::format("answers may be {} updates behind, and nothing waits for them",
                             engine.steps_off_policy),
                 "false, or steps_off_policy 0");
}

void check_degree(const Asked& asked) {
  const bool shares = asked.engine.at().shares_gpus;
  const std::int64_t all = shares ? asked.plan.cluster.world() : asked.engine.gpus.value_or(0);
  // An engine that has no time may have as many GPUs as it wants.
  const EngineGpus gpus{.most = all > 0 ? all : kLargestEngine,
                        .shared = all,
                        .beside_trainer = shares,
                        .layers_divided = shares && asked.timed};
  if (const auto problem = engine_degree_problem(asked.engine, asked.model, asked.plan, gpus))
    asked.refuse("tensor_parallel", problem->message, problem->expected);
  if (const auto problem = experts_problem(asked.engine, asked.model))
    asked.refuse("expert_parallel", problem->message, problem->expected);
}

std::string told(const RolloutEngine& engine, const EngineMemory& m, const Plan& plan) {
  const std::int64_t sequences = m.blocks_needed > 0 ? m.blocks / m.blocks_needed : 0;
  std::string text = fmt::format(
      "{} takes {} of each of its GPUs: weights {}, activations {}, cache {} in {} blocks of {} "
      "tokens, room for {} sequences of {} tokens at once",
      engine.engine->words, format_bytes(m.budget), format_bytes(m.weights),
      format_bytes(m.activations), format_bytes(m.cache), m.blocks, engine.block_tokens, sequences,
      engine.model_length);
  if (!engine.at().shares_gpus) return text + "; the trainer's GPUs have none of it";
  if (!plan.trainer->has_engine_inside) text += "; its process has a CUDA context beside that";
  return text + (engine.sleep_level > 0
                     ? fmt::format("; asleep it keeps up to {}; it wakes where the generation "
                                   "phase fits",
                                   format_bytes(m.asleep))
                     : std::string("; it keeps all while the trainer works (sleep_level 0)"));
}

Diagnostic check_engine(const Asked& asked, std::string key) {
  check_place(asked);
  check_degree(asked);
  const RolloutEngine& engine = asked.engine;
  const EngineMemory m = engine_memory(engine, asked.model, asked.plan);
  if (m.blocks < m.blocks_needed) {
    const double least = least_utilization(engine, m, asked.plan);
    asked.refuse(
        "gpu_memory_utilization",
        fmt::format("{} of a GPU leaves {} blocks of {} tokens beside weights of {} and "
                    "activations of {}; one sequence of {} tokens wants {}",
                    engine.utilization, m.blocks, engine.block_tokens, format_bytes(m.weights),
                    format_bytes(m.activations), engine.model_length, m.blocks_needed),
        least <= 1 ? fmt::format("at least {:.2f}", least)
                   : std::string("a larger tensor_parallel: a whole GPU is too small"));
  }
  return {
      .severity = Severity::note, .key = std::move(key), .message = told(engine, m, asked.plan)};
}

}  // namespace

std::optional<RolloutEngine> read_rollout(ObjectReader& workload, std::int64_t prompt,
                                          std::int64_t answer) {
  auto engine = read_engine(workload, "rollout", rollout_table());
  if (!engine) return engine;
  check_longest(workload, "rollout", *engine, answer);
  fit_length(workload, "rollout", *engine,
             checked_add(prompt, std::max(answer, engine->longest_answer)));
  return engine;
}

Diagnostic check_rollout(ObjectReader& workload, const Rlhf& rlhf) {
  const Asked asked{workload, "rollout", *rlhf.rollout, *rlhf.generator, rlhf.generation};
  if (quantization_of(rlhf.roles.front().plan.workload) != Quantization::none)
    asked.refuse("engine", "weights in few bits inside an engine are not estimated yet",
                 "no rollout, or a base in 16 bits");
  return check_engine(asked, "workload.rollout");
}

std::optional<Diagnostic> sleeps_for_nobody(const Rlhf& rlhf) {
  const RolloutEngine& engine = *rlhf.rollout;
  if (engine.sleep_level == 0 || engine.at().can_sleep) return std::nullopt;
  const EngineMemory m = engine_memory(engine, *rlhf.generator, rlhf.generation);
  return Diagnostic{
      .severity = Severity::warning,
      .key = "workload.rollout.sleep_level",
      .message = fmt::format("{}: an engine on GPUs of its own would give back {} of each, which "
                             "nobody takes; that it sleeps and wakes is not in the time",
                             engine.sleep_level, format_bytes(m.budget - m.asleep)),
      .expected = "0, or placement colocated"};
}

RolloutEngine read_judge(ObjectReader& reward, std::int64_t sequence) {
  RolloutEngine engine = read_engine(reward, "engine", rollout_table()).value_or(RolloutEngine{});
  fit_length(reward, "engine", engine, engine.model_length > 0 ? 0 : sequence);
  return engine;
}

void check_both_awake(ObjectReader& reward, const RolloutEngine& rollout,
                      const RolloutEngine& judge) {
  const bool both = rollout.at().shares_gpus && !rollout.sleeps() && !judge.sleeps();
  const double sum = rollout.utilization + judge.utilization;
  if (!both || sum <= 1) return;
  reward.fail("engine.gpu_memory_utilization",
              fmt::format("{:g} of a GPU, of which the engine that generates keeps {:g}: awake "
                          "together they ask for {:g}",
                          judge.utilization, rollout.utilization, sum),
              fmt::format("at most {:.2f}, or sleep_level 1 of one of them",
                          std::floor((1 - rollout.utilization) * 100 + 1e-9) / 100));
}

Diagnostic check_judge(ObjectReader& reward, const Judge& judge) {
  return check_engine({reward, "engine", judge.engine, judge.model, judge.plan, false},
                      "workload.models.reward.engine");
}

}  // namespace shardplan
