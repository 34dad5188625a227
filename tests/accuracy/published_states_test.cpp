// The tables of model states that the ZeRO papers and DeepSpeed's documentation print
// (data/published/zero_tables.json), through the lowering and the simulator.
#include <gtest/gtest.h>

#include <cmath>

#include "support/plan_testing.h"

namespace shardplan::published_states_test {
namespace {

const Json& tables() {
  static const Json json = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/zero_tables.json");
  return json;
}

constexpr std::int64_t kTensors = 10240;  // a multiple of every number of ranks: none straddles

Model model_with(double parameters) {
  return equal_tensors(kTensors, static_cast<std::int64_t>(std::llround(parameters / kTensors)));
}

double states_gb(double parameters, int stage, std::int64_t ranks) {
  return static_cast<double>(
             model_states(model_with(parameters), zero_plan(stage, "fp16-master", ranks))) /
         1e9;
}

/// Half a unit of the second decimal: what "0.12" can stand for.
constexpr double kPrinted = 0.005;

TEST(ZeroTable1, EveryRowWithinOnePerCent) {
  const Json& rows = tables().at("zero_table1").at("rows");
  ASSERT_EQ(rows.size(), 18U);
  for (const Json& row : rows) {
    const auto parameters = row[0].get<double>();
    const auto ranks = row[1].get<std::int64_t>();
    for (int stage = 1; stage <= 3; ++stage) {
      const auto printed = row[static_cast<std::size_t>(stage) + 1].get<double>();
      EXPECT_NEAR(states_gb(parameters, stage, ranks), printed, std::max(kPrinted, 0.01 * printed))
          << parameters << " parameters, stage " << stage << ", " << ranks << " ranks";
    }
  }
}

/// The most parameters whose states take at most `bytes`, by bisection over the real lowering.
double largest(int stage, std::int64_t ranks, double bytes) {
  std::int64_t good = 1, bad = std::int64_t{1} << 32;  // elements of each tensor
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    const Plan plan = zero_plan(stage, "fp16-master", ranks);
    const std::int64_t states = model_states(equal_tensors(kTensors, middle), plan);
    (static_cast<double>(states) <= bytes ? good : bad) = middle;
  }
  return static_cast<double>(good * kTensors);
}

TEST(ZeroTable2, LargestModelWithinOnePerCent) {
  const Json& table = tables().at("zero_table2");
  const double bytes = table.at("memory_gb").get<double>() * 1e9;
  const auto ranks = table.at("ranks").get<std::int64_t>();
  std::size_t rounded = 0;
  ASSERT_EQ(table.at("rows").size(), 20U);
  for (const Json& row : table.at("rows")) {
    const auto tensor_parallel = row[0].get<std::int64_t>();
    const auto stage = row[1].get<int>();
    auto expected = row[2].get<double>();
    for (const Json& r : table.at("rounding")) {
      if (r.at("tensor_parallel") != tensor_parallel || r.at("stage") != stage) continue;
      // The paper prints one figure; the exact closed form is beside it.
      EXPECT_NEAR(r.at("exact").get<double>(), expected, 0.03 * expected);
      expected = r.at("exact").get<double>();
      ++rounded;
    }
    // Tensor parallelism divides every tensor, so the model grows with its degree.
    EXPECT_NEAR(static_cast<double>(tensor_parallel) * largest(stage, ranks, bytes), expected,
                0.01 * expected)
        << "tensor parallel " << tensor_parallel << ", stage " << stage;
  }
  EXPECT_EQ(rounded, table.at("rounding").size());
}

TEST(ZeroInfinityFigure2a, TwentyBytesAParameterOverHostAndGpus) {
  for (const Json& row : tables().at("zero_infinity_figure2a").at("rows")) {
    const auto layers = row[0].get<std::int64_t>();
    const auto hidden = row[1].get<std::int64_t>();
    const double tib = row[2].get<double>() * std::pow(2.0, 40);
    ModelBuilder m({});  // attention 4·h·h, the two matrices of the MLP 8·h·h
    m.begin_repeat("layers", layers);
    m.tensor("attention.weight", {4 * hidden, hidden}, ParameterKind::linear);
    m.tensor("mlp.weight", {8 * hidden, hidden}, ParameterKind::linear);
    m.end_repeat();
    const Model model = m.build();
    Plan plan = zero_plan(3, "fp16-master", 16);
    plan.framework.deepspeed.zero.offload_optimizer.device = OffloadDevice::cpu;
    plan.framework.deepspeed.zero.offload_optimizer.pin_memory = false;
    const Estimate e = estimate(model, plan, Calibration{});
    const auto total = static_cast<double>(e.host_per_node.total() * plan.cluster.nodes +
                                           model_states(e) * plan.cluster.world());
    EXPECT_NEAR(total, tib, 0.01 * tib) << layers << " layers of " << hidden;
    EXPECT_EQ(e.parameters, 12 * layers * hidden * hidden);
  }
}

TEST(DeepSpeedEstimators, PrintTheirFormulasAndCoverTheStatesThatAreLeftOnTheGpu) {
  const Json& table = tables().at("deepspeed_estimators");
  const auto parameters = table.at("parameters").get<double>();
  const auto layer = table.at("largest_layer").get<double>();
  const auto ranks = table.at("ranks").get<std::int64_t>();
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  for (const Json& row : table.at("rows")) {
    const double formula =
        parameters * (row[4].get<double>() + row[5].get<double>() / static_cast<double>(ranks)) +
        layer * row[6].get<double>();
    EXPECT_NEAR(formula / kGib, row[3].get<double>(), std::max(kPrinted, 0.01 * formula / kGib));
    Plan plan = zero_plan(row[0].get<int>(), "bf16-master", ranks);
    ZeroOptions& zero = plan.framework.deepspeed.zero;
    if (row[1].get<bool>()) zero.offload_optimizer.device = OffloadDevice::cpu;
    if (row[2].get<bool>()) zero.offload_param.device = OffloadDevice::cpu;
    const auto states = static_cast<double>(model_states(model_with(parameters), plan));
    // The estimators charge 2 bytes a parameter (stage 2: and a whole copy of the gradients) more
    // than the states take; with offload they charge what is there.
    const double rest = formula - layer * row[6].get<double>();
    if (row[1].get<bool>()) {
      EXPECT_NEAR(states, rest, 1e-5 * parameters);
    } else {
      EXPECT_LT(states, rest);
    }
  }
}

}  // namespace
}  // namespace shardplan::published_states_test
