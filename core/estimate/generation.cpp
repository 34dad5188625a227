#include "estimate/generation.h"

#include "lowering/inference/generate.h"

namespace shardplan {
namespace {

void add(TimeEstimate& sum, const TimeEstimate& part, double times) {
  sum.step_seconds += times * part.step_seconds;
  sum.compute_seconds += times * part.compute_seconds;
  sum.exposed_communication_seconds += times * part.exposed_communication_seconds;
  sum.exposed_copy_seconds += times * part.exposed_copy_seconds;
  sum.idle_seconds += times * part.idle_seconds;
  sum.communication_seconds += times * part.communication_seconds;
  sum.speed_of_light_seconds += times * part.speed_of_light_seconds;
  sum.mfu += times * part.mfu * part.step_seconds;
  sum.hfu += times * part.hfu * part.step_seconds;
}

}  // namespace

/// The share is over the seconds that the host was fitted with, of runs on usual hosts.
TimeRates without_autograd(TimeRates rates) {
  rates.host.usual = {};
  for (const Issue issue : {Issue::python, Issue::nested, Issue::linear})
    rates.host.seconds[static_cast<std::size_t>(issue)] *= rates.host.no_grad;
  return rates;
}

TimeEstimate estimate_generation_time(const Model& model, const Plan& plan,
                                      const TimeRates& rates) {
  const TimeRates off = without_autograd(rates);
  const auto time_of = [&](const Pass& pass, const Pass* before) {
    return estimate_time(lower_pass(model, plan, pass, before), plan, off);
  };
  const Workload& w = plan.workload;
  const double tokens = static_cast<double>(w.generation.new_tokens);
  const double sequences = static_cast<double>(w.micro_batch);
  const Pass prompt{w.sequence_length, 0};
  TimeEstimate sum = time_of(prompt, nullptr);
  if (sum.step_seconds <= 0) return {};
  GenerationTime g;
  g.prefill_seconds = sum.step_seconds;
  g.prefill_tokens_per_second =
      sequences * static_cast<double>(w.sequence_length) / g.prefill_seconds;
  sum.mfu *= sum.step_seconds;
  sum.hfu *= sum.step_seconds;
  if (tokens > 0) {
    const Pass first{1, w.sequence_length};
    const Pass last{1, w.sequence_length + w.generation.new_tokens - 1};
    TimeEstimate decode;
    add(decode, time_of(first, &prompt), tokens / 2);
    const Pass before{1, last.past - 1};
    add(decode, time_of(last, &before), tokens / 2);
    g.decode_seconds = decode.step_seconds;
    g.decode_speed_of_light = decode.speed_of_light_seconds;
    g.decode_tokens_per_second = sequences * tokens / g.decode_seconds;
    sum.mfu += decode.mfu;
    sum.hfu += decode.hfu;
    decode.mfu = decode.hfu = 0;
    add(sum, decode, 1);
  }
  sum.mfu /= sum.step_seconds;
  sum.hfu /= sum.step_seconds;
  sum.tokens_per_second = sequences * tokens / sum.step_seconds;
  sum.generation = g;
  return sum;
}

}  // namespace shardplan
