// Margins are quantiles: of every second run by name, framework by framework.
#include "calibrate/margins.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace shardplan {
namespace {

/// A run that reserved `ratio` times what was predicted.
Comparison run_of(std::string_view framework, int number, double ratio) {
  Comparison c;
  c.name = fmt::format("{}-{:03}", framework, number);
  c.framework_name = framework;
  c.regime = AllocatorRegime::steady;
  for (const Figure figure : {Figure::reserved, Figure::allocated_peak}) {
    c.predicted[index_of(figure)] = 1e9;
    c.measured[index_of(figure)] = 1e9;
  }
  c.measured[index_of(Figure::reserved)] = ratio * 1e9;
  return c;
}

/// 0.99, 1.00, ... by number.
std::vector<Comparison> runs_of(std::string_view framework, int count) {
  std::vector<Comparison> runs;
  for (int i = 0; i < count; ++i) runs.push_back(run_of(framework, i, 0.99 + 0.01 * i));
  return runs;
}

std::vector<const Comparison*> all(const std::vector<Comparison>& runs) {
  std::vector<const Comparison*> pointers;
  for (const Comparison& c : runs) pointers.push_back(&c);
  return pointers;
}

TEST(FitHalf, IsEverySecondRunOfAFrameworkByName) {
  std::vector<Comparison> runs = runs_of("ddp", 3);
  runs.push_back(run_of("fsdp2", 7, 1));
  Comparison native = run_of("native", 1, 1);
  native.regime.reset();
  runs.push_back(native);
  const auto half = fit_half(runs);
  ASSERT_EQ(half.size(), 3U);
  EXPECT_EQ(half[0]->name, "ddp-000");
  EXPECT_EQ(half[1]->name, "ddp-002");
  EXPECT_EQ(half[2]->name, "fsdp2-007");
}

TEST(ThoseNamed, AreNotThoseWithoutASimulatedAllocator) {
  std::vector<Comparison> runs = runs_of("ddp", 3);
  runs.front().regime.reset();
  const auto named = those_named(runs, {"ddp-000", "ddp-002"});
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named.front()->name, "ddp-002");
}

TEST(ThoseRenewed, AreEverySecondOfOneRegimeAndTheNamedOfTheOthers) {
  std::vector<Comparison> runs = runs_of("ddp", 3);
  for (const Comparison& c : runs_of("single", 4)) runs.push_back(c);
  runs.push_back(run_of("single", 9, 1));
  runs.back().regime = AllocatorRegime::generation;
  const auto renewed = those_renewed(runs, {"ddp-001", "single-001", "single-009"}, "single",
                                     AllocatorRegime::steady);
  ASSERT_EQ(renewed.size(), 4U);
  EXPECT_EQ(renewed[0]->name, "ddp-001");
  EXPECT_EQ(renewed[1]->name, "single-009");
  EXPECT_EQ(renewed[2]->name, "single-000");
  EXPECT_EQ(renewed[3]->name, "single-002");
}

// Of a run that reserved 1.1 times what was predicted, where a neighbour holds 1.05 times that and
// the program's own bound 1.02 times.
TEST(FitMargins, AreOfWhatNeighboursHold) {
  Comparison run = run_of("single", 0, 1.1);
  run.neighbours = {1'000'000'000, 1'050'000'000, 980'000'000};
  run.reserved_over = 1.02;
  const Margin margin = margin_of(fit_margins({&run}), "single", AllocatorRegime::steady);
  EXPECT_NEAR(margin.reserved, 1.1 / (1.05 * 1.02), 0.0011);
  run.measured[index_of(Figure::reserved)] = 0.931e9;
  EXPECT_NEAR(margin_of(fit_margins({&run}), "single", AllocatorRegime::steady).least, 0.95,
              0.0011);
}

TEST(FitMargins, AreTheFrameworksOwnWhereItHasEnoughRuns) {
  std::vector<Comparison> runs = runs_of("single", 15);
  runs.push_back(run_of("ddp", 0, 1.5));
  const std::vector<Margin> margins = fit_margins(all(runs));
  const Margin& own = margin_of(margins, "single", AllocatorRegime::steady);
  EXPECT_EQ(own.runs, 15);
  EXPECT_NEAR(own.reserved, 1.13, 0.0011);  // of so few the largest
  EXPECT_NEAR(own.least, 0.99, 0.0011);
  EXPECT_NEAR(margin_of(margins, "ddp", AllocatorRegime::steady).reserved, 1.5, 0.0011);
}

TEST(FitMargins, TakeTheWidestWhereARegimeHasHardlyAnyRuns) {
  std::vector<Comparison> runs = runs_of("single", 20);
  runs.push_back(run_of("single", 99, 1.01));
  runs.back().regime = AllocatorRegime::iterations;
  const std::vector<Margin> margins = fit_margins(all(runs));
  EXPECT_NEAR(margin_of(margins, "single", AllocatorRegime::iterations).reserved, 1.18, 0.0011);
}

TEST(FitMargins, OfFewRunsWithCopiesAreThoseOfStreamsToo) {
  std::vector<Comparison> runs = runs_of("deepspeed", 20);
  for (Comparison& c : runs) c.regime = AllocatorRegime::streams;
  runs.push_back(run_of("deepspeed", 99, 1.25));
  runs.back().regime = AllocatorRegime::copies;
  const std::vector<Margin> margins = fit_margins(all(runs));
  const Margin& copies = margin_of(margins, "deepspeed", AllocatorRegime::copies);
  EXPECT_EQ(copies.runs, 21);
  EXPECT_NEAR(copies.reserved, 1.25, 0.0011);
  EXPECT_NEAR(margin_of(margins, "deepspeed", AllocatorRegime::streams).reserved, 1.18, 0.0011);
}

TEST(FitMargins, CountWhatChanceMayHoldOnlyOnce) {
  std::vector<Comparison> runs(15, run_of("ddp", 0, 1.2));
  for (Comparison& c : runs) c.held_at_most = 200'000'000;
  const std::vector<Margin> margins = fit_margins(all(runs));
  EXPECT_NEAR(margin_of(margins, "ddp", AllocatorRegime::steady).reserved, 1.0, 0.0011);
  EXPECT_NEAR(margin_of(margins, "ddp", AllocatorRegime::steady).least, 1.0, 0.0011);
}

TEST(MarginOf, IsNoneWithoutAny) {
  const Margin& none = margin_of({}, "single", AllocatorRegime::steady);
  EXPECT_EQ(none.reserved, 1);
  EXPECT_EQ(none.least, 1);
}

}  // namespace
}  // namespace shardplan
