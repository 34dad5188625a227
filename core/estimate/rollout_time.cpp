#include "estimate/rollout_time.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "estimate/engine_seconds.h"
#include "estimate/handover_time.h"
#include "lowering/inference/pass.h"
#include "serving/answer_lengths.h"
#include "serving/cache_room.h"
#include "serving/engine_pass.h"
#include "serving/queue.h"
#include "timing/timeline.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What a job asks of one engine, and in which portions the engine answers it.
struct Answers {
  std::int64_t sequences = 0;  ///< of all batches that it answers together
  std::int64_t at_once = 0;    ///< for which the cache has room to their last token
  std::int64_t handovers = 1;  ///< while they are made
  double most_tokens = 0;      ///< of prompts in a pass
  double prompt = 0, answer = 0;
  AnswerLengths lengths;
  double of_all = 0;  ///< answers of all engines: the longest of them is waited for
  CacheRoom room;
};

/// The engine as its answers share prompts: those of a prompt that it has itself. Of layers with a
/// state a later answer finds nothing (vLLM turns its prefix cache off).
RolloutEngine sharing(const Rlhf& rlhf, std::int64_t engines, std::int64_t sequences) {
  RolloutEngine engine = *rlhf.rollout;
  if (rlhf.roles.front().plan.trainer->spreads_completions)
    engine.completions = ceil_div(engine.completions, engines);
  engine.completions = std::clamp<std::int64_t>(engine.completions, 1, sequences);
  if (rlhf.generator->facts.has_state) engine.prefix_caching = false;
  return engine;
}

/// Batches that its engines answer together: those that answers may be behind (NeMo RL,
/// algorithms/async_utils/trajectory_collector.py, _get_next_target_for_generation).
std::int64_t batches_at_once(const Rlhf& rlhf) {
  const RolloutEngine& engine = *rlhf.rollout;
  const bool several =
      engine.runs_ahead() && !rlhf.roles.front().plan.trainer->answers_batch_by_batch;
  return several ? engine.steps_off_policy : 1;
}

Answers answers_of(const Rlhf& rlhf) {
  const Workload& w = rlhf.generation.workload;
  const Plan& trainer = rlhf.roles.front().plan;
  const RolloutEngine& engine = *rlhf.rollout;
  const EngineMemory memory = engine_memory(engine, *rlhf.generator, rlhf.generation);
  const std::int64_t gpus = engine.gpus.value_or(trainer.cluster.world());
  const std::int64_t engines = std::max<std::int64_t>(1, gpus / engine.tensor_parallel);
  const std::int64_t sequences =
      ceil_div(checked_mul(checked_mul(trainer.data_ranks(), w.micro_batch), batches_at_once(rlhf)),
               engines);
  const auto mean = static_cast<double>(w.generation.new_tokens);
  const auto longest = static_cast<double>(engine.longest_answer);
  Answers a{.lengths = AnswerLengths(mean, longest),
            .room = CacheRoom(sharing(rlhf, engines, sequences), w)};
  a.of_all = static_cast<double>(checked_mul(sequences, engines));
  a.sequences = sequences;
  a.handovers = batches_at_once(rlhf);
  a.at_once = std::clamp<std::int64_t>(a.room.sequences_in(memory.blocks), 1, engine.sequences);
  if (engine.answers_in_work > 0)
    a.at_once = std::min(a.at_once, ceil_div(engine.answers_in_work, engines));
  a.most_tokens = static_cast<double>(engine.batched_tokens);
  a.prompt = static_cast<double>(w.sequence_length);
  a.answer = mean;
  return a;
}

/// So many tokens of prompts that are `length` long, in full passes.
void add_prompt_tokens(TimeEstimate& sum, const ServedNetwork& network, const Answers& a,
                       double tokens, double length, double portions) {
  const double full = std::floor(tokens / a.most_tokens);
  const auto prompts = [&](double taken) {
    return network.time_of({.prompt_tokens = taken, .prompt_length = std::min(length, taken)});
  };
  if (full > 0) add(sum, prompts(a.most_tokens), full * portions);
  if (tokens > full * a.most_tokens) add(sum, prompts(tokens - full * a.most_tokens), portions);
}

/// Prompts of so many sequences.
void add_prompts(TimeEstimate& sum, const ServedNetwork& network, const Answers& a,
                 std::int64_t sequences, double portions) {
  add_prompt_tokens(sum, network, a, static_cast<double>(a.room.prompt_tokens(sequences)), a.prompt,
                    portions);
}

/// So many sequences together, so many times: their prompts, then a pass for each token.
void add_portions(TimeEstimate& sum, const ServedNetwork& network, const Answers& a,
                  std::int64_t sequences, double portions) {
  add_prompts(sum, network, a, sequences, portions);
  const EngineLoad decoding{.decoding = static_cast<double>(sequences),
                            .context = a.prompt + a.answer / 2};
  add(sum, network.time_of(decoding), a.answer * portions);
}

/// Answers that end by themselves. While some wait, as many run as have room, for another takes the
/// place of each that ends. The last of them have as much left as if they began together: fewer and
/// fewer run, until the longest of all engines' ends.
void add_ending(TimeEstimate& sum, const ServedNetwork& network, const Answers& a) {
  add_prompts(sum, network, a, a.sequences, 1);
  const auto together = static_cast<double>(std::min(a.sequences, a.at_once));
  const double waiting = static_cast<double>(a.sequences) - together;
  if (waiting > 0)
    add(sum, network.time_of({.decoding = together, .context = a.prompt + a.answer}),
        waiting * a.answer / together);
  add(sum, ending_passes(network, a.lengths, together, a.of_all, a.prompt), 1);
}

/// Answers that go on under new weights: as many are in work throughout, and each pass gives each
/// of them a token. New weights make cached keys useless: those in work are ended and asked for
/// once more, with what they have said as part of the prompt (verl, checkpoint_engine/base.py,
/// abort_all_requests; slime, rollout/sglang_rollout.py, abort), unless the trainer pauses the
/// engine with its cache as it is.
void add_continuing(TimeEstimate& sum, const ServedNetwork& network, const Answers& a,
                    bool keeps_cache) {
  const auto together = static_cast<double>(a.at_once);
  const double context = a.prompt + a.lengths.said();
  add_prompts(sum, network, a, a.sequences, 1);
  if (!keeps_cache)
    add_prompt_tokens(sum, network, a, together * context, context,
                      static_cast<double>(a.handovers));
  add(sum, network.time_of({.decoding = together, .context = context}),
      static_cast<double>(a.sequences) * a.answer / together);
}

/// Time at the GPU's peak rate of what its sequences compute: an engine's products are the
/// network's.
double busy_seconds(const Rlhf& rlhf, const Answers& a, const TimeRates& rates) {
  const Workload& w = rlhf.generation.workload;
  const Pass prompt{w.sequence_length, 0};
  const Pass middle{1, w.sequence_length + w.generation.new_tokens / 2};
  const Pass before{1, middle.past - 1};
  const double prompts = static_cast<double>(a.room.prompt_tokens(a.sequences)) / a.prompt;
  const auto peak = [&](const Pass& pass, const Pass* earlier) {
    return peak_seconds(*rlhf.generator, rlhf.generation, pass, earlier, rates);
  };
  return prompts * peak(prompt, nullptr) +
         static_cast<double>(a.sequences) * a.answer * peak(middle, &before);
}

/// What the trainer's GPUs do for it, and its program waits for.
void add_program(TimeEstimate& sum, const Program& handover, const Plan& plan,
                 const TimeRates& rates) {
  const StepTimes step = simulate_time(handover, plan, rates);
  sum.step_seconds += step.step;
  sum.exposed_communication_seconds += step.exposed_communication;
  sum.exposed_copy_seconds += step.exposed_copies;
  sum.communication_seconds += step.communication;
  sum.idle_seconds += step.idle;
}

/// What is the trainer's own around the answers, while the GPUs wait for its host.
double host_seconds(const Rlhf& rlhf, const Answers& a) {
  const AnswersHost& own = rlhf.roles.front().plan.trainer->around_answers;
  const auto answers = static_cast<double>(a.sequences);
  return kPythonCall * (own.calls + answers * (own.of_answer + a.answer * own.of_token));
}

/// A batch's part of what all that are answered together take.
TimeEstimate part_of(TimeEstimate all, std::int64_t batches) {
  for (const auto seconds : {&TimeEstimate::step_seconds, &TimeEstimate::compute_seconds,
                             &TimeEstimate::exposed_communication_seconds,
                             &TimeEstimate::communication_seconds, &TimeEstimate::idle_seconds})
    all.*seconds /= static_cast<double>(batches);
  return all;
}

TimeEstimate answers_time(const Rlhf& rlhf, const TimeRates& rates) {
  const RolloutEngine& engine = *rlhf.rollout;
  Plan served = rlhf.generation;
  served.cluster = engine_cluster(engine, served.cluster);
  served.workload.generation.engine = engine;
  served.workload.generation.engine->scores |=
      rlhf.roles.front().plan.trainer->asks_log_probabilities;
  const ServedNetwork network(*rlhf.generator, served, rates);
  const Answers a = answers_of(rlhf);
  TimeEstimate sum;
  const std::int64_t portions = a.sequences / a.at_once;
  const std::int64_t rest = a.sequences % a.at_once;
  if (engine.answers_in_work > 0 && !engine.streams) {
    add_continuing(sum, network, a, rlhf.roles.front().plan.trainer->keeps_cache_under_new_weights);
  } else if (engine.longest_answer > 0) {
    add_ending(sum, network, a);
  } else {
    if (portions > 0) add_portions(sum, network, a, a.at_once, static_cast<double>(portions));
    if (rest > 0) add_portions(sum, network, a, rest, 1);
  }
  add_idle(sum, host_seconds(rlhf, a));
  sum.mfu = sum.hfu =
      busy_seconds(rlhf, a, rates) / static_cast<double>(engine.tensor_parallel) / sum.step_seconds;
  return part_of(sum, batches_at_once(rlhf));
}

/// Answers that are all as long end together, as many as run at once.
double portions_of(const Rlhf& rlhf) {
  if (rlhf.rollout->longest_answer > 0) return 0;
  const Answers a = answers_of(rlhf);
  return static_cast<double>(a.sequences) / static_cast<double>(a.at_once);
}

TimeEstimate handover_time(const Rlhf& rlhf, const Program& handover, const TimeRates& rates) {
  const RolloutEngine& engine = *rlhf.rollout;
  const Plan& plan = rlhf.roles.front().plan;
  TimeEstimate sum;
  add_program(sum, handover, plan, rates);
  if (!engine.at().shares_gpus) {
    add_broadcast(sum, rlhf, rates);
    return sum;
  }
  add_idle(sum, mapping_seconds(engine, engine_memory(engine, *rlhf.generator, rlhf.generation)));
  if (plan.trainer->loads_each_tensor)
    add_idle(sum, loading_seconds(rlhf.roles.front().model, engine, false));
  return sum;
}

}  // namespace

RolloutTime estimate_rollout_time(const Rlhf& rlhf, const Program& handover,
                                  const TimeRates& rates) {
  const RolloutEngine& engine = *rlhf.rollout;
  RolloutTime time;
  if (!knows_time(rlhf.roles.front().plan)) return time;
  if (!engine.at().shares_gpus && !engine.gpus) {
    time.answers.unknown_because =
        "how many GPUs the rollout engine has is not said (workload.rollout.gpus)";
  } else if (!is_timed(*rlhf.generator, rlhf.generation, engine)) {
    time.answers.unknown_because = "layers over so many GPUs of an engine are not timed";
  } else {
    time.handover = handover_time(rlhf, handover, rates);
    time.answers = answers_time(rlhf, rates);
    time.portions = portions_of(rlhf);
  }
  return time;
}

}  // namespace shardplan
