#include "estimate/iterations.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "estimate/assemble.h"
#include "lowering/rlhf/lower.h"
#include "serving/answer_lengths.h"

namespace shardplan {
namespace {

constexpr std::size_t kIterations = 100;

/// Lengths that tell iterations apart, beside the longest.
constexpr std::size_t kAnswerLengths = 8;

std::int64_t mean_answer(const Rlhf& rlhf) {
  return rlhf.generation.workload.generation.new_tokens;
}

/// Passes over as many tokens as a prompt and an answer have, not over a budget of them.
bool takes_answers(const Plan& plan, const Rlhf& rlhf) {
  const Workload& w = rlhf.generation.workload;
  return plan.workload.sequence_length == w.sequence_length + mean_answer(rlhf);
}

bool differ(const Rlhf& rlhf) {
  return rlhf.rollout && rlhf.rollout->longest_answer > mean_answer(rlhf) &&
         takes_answers(rlhf.roles.front().plan, rlhf);
}

Rlhf of_length(const Rlhf& rlhf, std::int64_t answer) {
  Rlhf other = rlhf;
  for (Role& role : other.roles)
    if (takes_answers(role.plan, rlhf))
      role.plan.workload.sequence_length = rlhf.generation.workload.sequence_length + answer;
  other.generation.workload.generation.new_tokens = answer;
  return other;
}

/// Longest answers of as many iterations, from the shortest up: of the middle of each eighth.
std::vector<std::int64_t> longest_answers(const Rlhf& rlhf) {
  const AnswerLengths lengths(static_cast<double>(mean_answer(rlhf)),
                              static_cast<double>(rlhf.rollout->longest_answer));
  const auto answers = static_cast<double>(rlhf.generation.workload.micro_batch);
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < kAnswerLengths; ++i) {
    const double below = (static_cast<double>(i) + 0.5) / static_cast<double>(kAnswerLengths);
    all.push_back(std::llround(lengths.longest_below(answers, below)));
  }
  return all;
}

/// Which length each iteration has, as if drawn: multiples of the golden ratio fill all eighths
/// alike. One has the longest answer of all, when half of them are over.
std::vector<std::size_t> drawn() {
  constexpr double kGolden = 0.6180339887498949;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kIterations; ++i) {
    double whole = 0;
    const double share = std::modf(static_cast<double>(i + 1) * kGolden, &whole);
    order.push_back(i == kIterations / 2
                        ? kAnswerLengths
                        : static_cast<std::size_t>(share * static_cast<double>(kAnswerLengths)));
  }
  return order;
}

}  // namespace

std::optional<Rlhf> with_longest_answers(const Rlhf& rlhf) {
  if (!differ(rlhf)) return std::nullopt;
  return of_length(rlhf, rlhf.rollout->longest_answer);
}

std::optional<ManyIterations> add_iterations(ReservedRuns& runs, const Program& longest,
                                             const Rlhf& rlhf, const Plan& plan,
                                             const Calibration& calibration) {
  if (!differ(rlhf)) return std::nullopt;
  const std::vector<std::int64_t> answers = longest_answers(rlhf);
  std::vector<Program> programs;
  for (const std::int64_t answer : answers) programs.push_back(lower_rlhf(of_length(rlhf, answer)));
  std::vector<const Program*> all;
  for (const Program& program : programs) all.push_back(&program);
  all.push_back(&longest);
  ManyIterations many{.count = static_cast<std::int64_t>(kIterations),
                      .shortest = answers.front(),
                      .longest = rlhf.rollout->longest_answer,
                      .alike = runs.spare().reserved};
  add_steps(runs, plan, calibration, all, drawn());
  many.reserved = runs.spare().reserved;
  return many;
}

}  // namespace shardplan
