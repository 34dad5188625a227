#include "estimate/judge_time.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "estimate/engine_seconds.h"

namespace shardplan {
namespace {

/// Prompts and answers as one sequence each, in passes as full as the engine makes them. Nothing is
/// generated: a score is read from the last token (verl 0.8, experimental/reward_loop).
void add_scores(TimeEstimate& sum, const Judge& judge, std::int64_t sequences, std::int64_t length,
                const TimeRates& rates) {
  Plan served = judge.plan;
  served.workload.generation.engine = judge.engine;
  const ServedNetwork network(judge.model, served, rates);
  const auto tokens = static_cast<double>(checked_mul(sequences, length));
  const auto most = static_cast<double>(judge.engine.batched_tokens);
  const auto pass = [&](double taken) {
    return network.time_of(
        {.prompt_tokens = taken, .prompt_length = std::min(static_cast<double>(length), taken)});
  };
  const double full = std::floor(tokens / most);
  if (full > 0) add(sum, pass(most), full);
  if (tokens > full * most) add(sum, pass(tokens - full * most), 1);
}

}  // namespace

TimeEstimate estimate_judge_time(const Rlhf& rlhf, const TimeRates& rates) {
  TimeEstimate sum;
  const Judge& judge = *rlhf.judge;
  const Plan& trainer = rlhf.roles.front().plan;
  if (!knows_time(trainer) || !is_timed(judge.model, judge.plan, judge.engine)) return sum;
  const Workload& w = rlhf.generation.workload;
  const std::int64_t engines =
      std::max<std::int64_t>(1, trainer.cluster.world() / judge.engine.tensor_parallel);
  const std::int64_t sequences =
      ceil_div(checked_mul(trainer.data_ranks(), w.micro_batch), engines);
  const std::int64_t length = checked_add(w.sequence_length, w.generation.new_tokens);
  add_scores(sum, judge, sequences, length, rates);
  const double busy = static_cast<double>(sequences) *
                      peak_seconds(judge.model, judge.plan, Pass{length, 0}, nullptr, rates);
  add_idle(sum,
           mapping_seconds(judge.engine, engine_memory(judge.engine, judge.model, judge.plan)));
  sum.mfu = sum.hfu = busy / static_cast<double>(judge.engine.tensor_parallel) / sum.step_seconds;
  return sum;
}

}  // namespace shardplan
