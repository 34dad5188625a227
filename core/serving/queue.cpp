#include "serving/queue.h"

#include <algorithm>
#include <cmath>

namespace shardplan {
namespace {

/// Tokens of a request that the engine computes, and how they meet in its passes.
struct Lengths {
  explicit Lengths(const Plan& plan)
      : past(static_cast<double>(plan.workload.generation.shared_prefix)),
        prompt(static_cast<double>(plan.workload.sequence_length) - past),
        answer(static_cast<double>(std::max<std::int64_t>(plan.workload.generation.new_tokens, 1))),
        context(static_cast<double>(plan.workload.sequence_length) + answer / 2),
        most(static_cast<double>(plan.workload.generation.engine->batched_tokens)) {}
  double past, prompt, answer;
  double context;  ///< of a running sequence in the mean
  double most;     ///< of a pass
};

double pass_seconds(const ServedNetwork& network, const Lengths& l, double decoding, double taken) {
  return network.time_of({decoding, l.context, taken, taken > 0 ? l.prompt : 0, l.past}).seconds();
}

/// `together`: tokens of prompts that wait for a pass at once.
SteadyState steady(const ServedNetwork& network, const Lengths& l, double sequences,
                   double together) {
  SteadyState s;
  // Those whose prompts wait take no token of a pass.
  s.decoding = std::min(sequences, l.most / (1 + l.prompt / l.answer));
  s.prompt_tokens = s.decoding * l.prompt / l.answer;
  const double room = std::max(1.0, l.most - s.decoding);
  s.taken = std::min(std::max(s.prompt_tokens, together), room);
  // None takes prompts where all of a prompt is shared.
  s.share = s.taken > 0 ? s.prompt_tokens / s.taken : 0;
  if (s.share > 0)
    s.pass.add(network.time_of({s.decoding, l.context, s.taken, l.prompt, l.past}), s.share);
  if (s.share < 1)
    s.pass.add(network.time_of({.decoding = s.decoding, .context = l.context}), 1 - s.share);
  return s;
}

/// While the first come in and while the last go out, half of the sequences decode in the mean, in
/// passes that take prompts and in as many that take none. Of rounds without ends there would have
/// been the former alone, with all of them.
double ends(const ServedNetwork& network, const Lengths& l, const SteadyState& s) {
  const double passes = s.share * l.answer - 1;
  if (passes <= 0) return 0;
  const double half = s.decoding / 2;
  return passes * (pass_seconds(network, l, half, 0) + pass_seconds(network, l, half, s.taken) -
                   pass_seconds(network, l, s.decoding, s.taken));
}

}  // namespace

SteadyState steady_state(const ServedNetwork& network, const Plan& plan, double sequences) {
  const Lengths l(plan);
  return steady(network, l, sequences, l.prompt);
}

EnginePassTime ending_passes(const ServedNetwork& network, const AnswerLengths& lengths,
                             double together, double of_all, double prompt) {
  EnginePassTime all;
  const double end = lengths.longest_of(of_all);
  constexpr int kParts = 24;
  for (int i = 0; i < kParts; ++i) {
    const double from = end * i / kParts, to = end * (i + 1) / kParts;
    const double running = std::max(1.0, lengths.running_between(together, from, to));
    all.add(network.time_of({.decoding = running, .context = prompt + (from + to) / 2}), to - from);
  }
  return all;
}

namespace {

/// Of answers that end by themselves: the prompts of those that run at first, then the steady state
/// while others wait, then the end.
double ending_queue(const ServedNetwork& network, const Plan& plan, double sequences,
                    double requests) {
  const Lengths l(plan);
  const auto longest = static_cast<double>(plan.workload.generation.engine->longest_answer);
  const double at_once = std::min(sequences, requests);
  const SteadyState s = steady(network, l, at_once, l.prompt);
  const double first =
      at_once * l.prompt / l.most *
      network.time_of({0, 0, l.most, std::min(l.prompt, l.most), l.past}).seconds();
  const double meanwhile = (requests - at_once) * l.answer / s.decoding * s.pass.seconds();
  return first + meanwhile +
         ending_passes(network, AnswerLengths(l.answer, longest), at_once, requests,
                       l.prompt + l.past)
             .seconds();
}

}  // namespace

double queue_seconds(const ServedNetwork& network, const Plan& plan, double sequences,
                     double requests) {
  if (plan.workload.generation.engine->longest_answer > 0)
    return ending_queue(network, plan, sequences, requests);
  const Lengths l(plan);
  const double at_once = std::min(sequences, requests);
  // Those of a round come in and end together, and so the next round's do.
  const auto round = [&](double of) { return steady(network, l, of, of * l.prompt); };
  const SteadyState full = round(at_once);
  if (full.decoding < at_once)  // prompts decide
    return requests * l.answer / full.decoding * full.pass.seconds() + ends(network, l, full);
  // All are as long: a round of sequences ends before the next is complete, and the last round has
  // what is left.
  const double rounds = std::floor(requests / at_once);
  const double left = requests - rounds * at_once;
  double seconds = rounds * l.answer * full.pass.seconds();
  if (left < 1) return seconds + ends(network, l, full);
  const SteadyState last = round(left);
  return seconds + l.answer * last.pass.seconds() + ends(network, l, last);
}

}  // namespace shardplan
