// The bounds of memory against runs that they were not fitted to: where there was memory to spare,
// every second record; at the boundary, jobs on GPUs of which another process held the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "all_records.h"
#include "calibrate/margins.h"
#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/accuracy.h"
#include "questions/coverage.h"

namespace shardplan::bounds_test {
namespace {

const std::string kSource = SHARDPLAN_SOURCE_DIR;

TEST(Bounds, AreFittedToHalfOfTheRecordsByName) {
  const Calibration c = load_calibration();
  ASSERT_FALSE(c.margin_records.empty());
  for (const std::string& name : c.margin_records)
    EXPECT_TRUE(std::any_of(all_records().comparisons.begin(), all_records().comparisons.end(),
                            [&](const Comparison& run) { return run.name == name; }))
        << name;
  for (const Margin& m : c.margins) {
    EXPECT_GE(m.reserved, 1);
    EXPECT_LE(m.least, 1);
  }
}

/// The figures beside every time: `shardplan calibrate --margins` writes them anew.
TEST(StepErrors, AreThoseOfAllRecords) {
  const std::vector<StepError> measured = step_errors(all_records().comparisons);
  const std::vector<StepError> told = load_calibration().step_errors;
  ASSERT_EQ(measured.size(), told.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].kind, measured[i].kind);
    EXPECT_EQ(told[i].runs, measured[i].runs) << told[i].kind;
    EXPECT_NEAR(told[i].mean, measured[i].mean, 0.0011) << told[i].kind;
    EXPECT_NEAR(told[i].largest, measured[i].largest, 0.0011) << told[i].kind;
  }
}

/// What users may hold us to (docs/evidence/accuracy.md, "Bounds"): frameworks with fewer judged
/// runs than this are in the whole alone.
constexpr std::int64_t kEnoughRuns = 20;

TEST(Bounds, HoldForNinetyFiveOfAHundredRuns) {
  for (const Coverage& c : coverage_of(all_records().comparisons, all_records().bound_records)) {
    if (c.runs < kEnoughRuns) continue;
    EXPECT_GE(c.share(), 0.95) << c.name << ", farthest beyond: " << c.worst_name;
  }
}

TEST(Bounds, AreCloseToTheRuns) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kWidths{{{"single", 0.05},
                                                                        {"ddp", 0.05},
                                                                        {"fsdp2", 0.05},
                                                                        {"deepspeed stage 1", 0.08},
                                                                        {"deepspeed stage 2", 0.08},
                                                                        {"deepspeed stage 3", 0.08},
                                                                        {"megatron", 0.08},
                                                                        {"all", 0.05}}};
  const auto table = coverage_of(all_records().comparisons, all_records().bound_records);
  for (const auto& [name, width] : kWidths) {
    const auto row =
        std::find_if(table.begin(), table.end(), [&](const Coverage& c) { return c.name == name; });
    ASSERT_NE(row, table.end()) << name;
    EXPECT_LE(row->median_width, width) << name;
  }
}

struct Outcomes {
  int fits = 0, died_though_fits = 0;
  int beyond = 0, ran_though_beyond = 0;
};

/// The job on a GPU of the same kind, of which only `usable` bytes are free.
Job boundary_job(Json job, std::int64_t usable, std::int64_t micro_batch) {
  const std::string cluster = job["cluster"];
  const std::size_t x = cluster.find('x');
  job["cluster"] = Json{{"gpus_per_node", std::stoi(cluster.substr(0, x))},
                        {"nodes", 1},
                        {"gpu",
                         {{"name", cluster.substr(x + 1)},
                          {"memory_bytes", usable},
                          {"usable_bytes", usable},
                          {"arch", "Hopper"},
                          {"compute_capability", "9.0"}}}};
  job["workload"]["micro_batch"] = micro_batch;
  const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(job, "boundary", {&hardware, ""});
}

void judge(const Json& boundary, const Json& outcome, const Calibration& calibration,
           Outcomes& sum) {
  const std::string how = outcome["outcome"];
  if (how != "ran" && how != "out of memory") return;
  const Job job = boundary_job(boundary["job"], boundary["usable_bytes"], outcome["micro_batch"]);
  const Fit fit = estimate(job.model, job.plan, calibration).verdict.gpu.fit;
  if (fit == Fit::fits) {
    ++sum.fits;
    sum.died_though_fits += how != "ran" ? 1 : 0;
  }
  if (fit == Fit::does_not_fit) {
    ++sum.beyond;
    sum.ran_though_beyond += how == "ran" ? 1 : 0;
  }
}

Outcomes judged(const std::vector<std::string>& files) {
  const Calibration calibration = load_calibration();
  Outcomes sum;
  for (const std::string& file : files) {
    const Json record = read_json_file(kSource + "/data/measurements/fit_boundary/" + file);
    for (const Json& boundary : record["cases"])
      for (const Json& outcome : boundary["outcomes"]) judge(boundary, outcome, calibration, sum);
  }
  return sum;
}

/// Runs that no margin has seen: ten jobs. Two answers are misses, which
/// docs/evidence/accuracy.md tells where users read: gemma-2-2b with checkpointing died though it
/// was said to fit, and ZeRO-2 of Qwen3-1.7B ran though it was said to be tight.
TEST(Boundary, IsWhereItWasPredicted) {
  const Outcomes o = judged({"h200-judged.json"});
  EXPECT_GE(o.fits, 9);
  EXPECT_LE(o.died_though_fits, 1);
  EXPECT_GE(o.beyond, 10);
  EXPECT_EQ(o.ran_though_beyond, 0);
}

/// No answer is wrong, over at least so many that fit and that do not.
void expect_right(const Outcomes& o, int fits, int beyond) {
  EXPECT_GE(o.fits, fits);
  EXPECT_EQ(o.died_though_fits, 0);
  EXPECT_GE(o.beyond, beyond);
  EXPECT_EQ(o.ran_though_beyond, 0);
}

/// FSDP2 and DeepSpeed on two H100, asked before the runs. Then one of the six was said to fit and
/// died, with the optimizer on the host; the rule that calls it tight was made of this run.
/// One of five that ran is said to be tight since allocations follow autograd's order.
TEST(Boundary, IsRightForTwoGpus) {
  expect_right(judged({"h100-2gpu.json"}), 4, 5);
}

/// Two H200, asked before the runs: FSDP2 with Liger, and two jobs with the optimizer on the host,
/// which judge that rule. Of four that died one is tight, and was said not to fit before
/// DeepSpeed's workspaces and gradients were placed as now: ZeRO-3 of Llama-3.2-3B with nine
/// samples, all on the host. Of four that ran one is tight too since allocations follow autograd's
/// order.
TEST(Boundary, IsRightForTwoGpusAfterwards) {
  expect_right(judged({"h200-2gpu-later.json"}), 3, 3);
}

/// One answer is a miss since gradients stay in the places that were held for them, which
/// docs/evidence/accuracy.md tells: TinyLlama with Liger and 36 samples ran.
TEST(Boundary, IsRightForTheRunsOfItsMargins) {
  const Outcomes o = judged({"h100-trainer.json", "h200-trainer.json"});
  EXPECT_GE(o.fits, 12);
  EXPECT_EQ(o.died_though_fits, 0);
  EXPECT_GE(o.beyond, 6);
  EXPECT_LE(o.ran_though_beyond, 1);
}

}  // namespace
}  // namespace shardplan::bounds_test
