// What keys cost where a network is divided over GPUs by more than its samples.
#include "lint_testing.h"
#include "render/lint_text.h"

namespace shardplan {
namespace {

using ::testing::HasSubstr;

struct Division {
  std::string name;
  std::string config;
  Json options;
};

void PrintTo(const Division& division, std::ostream* out) {
  *out << division.name;
}

/// Each says all that the memory model reads at its stage.
std::vector<Division> divisions() {
  const std::string precision = R"("bf16": {"enabled": true, "check_grad_overflow": true},
    "data_types": {"grad_accum_dtype": "fp32"}, "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": true}},)";
  const std::string batch = R"("train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4,)";
  return {{"tensor",
           "{" + batch + precision + R"("tensor_parallel": {"autotp_size": 4},
            "communication_data_type": "bf16",
            "zero_optimization": {"stage": 2, "reduce_bucket_size": 500000000,
              "allgather_bucket_size": 200000000, "overlap_comm": true,
              "contiguous_gradients": true, "reduce_scatter": true,
              "round_robin_gradients": false, "offload_optimizer": {"device": "cpu"}}})",
           {{"model", "llama-2-7b"}, {"gpus", "8xH100"}}},
          {"sequence",
           "{" + batch + precision + R"("sequence_parallel_size": 4,
            "seq_parallel_communication_data_type": "bf16",
            "zero_optimization": {"stage": 3, "reduce_bucket_size": 500000000,
              "stage3_prefetch_bucket_size": 50000000, "sub_group_size": 1000000000,
              "stage3_param_persistence_threshold": 100000,
              "stage3_max_live_parameters": 1000000000,
              "stage3_max_reuse_distance": 1000000000, "overlap_comm": true}})",
           {{"model", "llama-2-7b"}, {"gpus", "8xH100"}}},
          {"pipeline",
           "{" + batch + precision + R"(
            "zero_optimization": {"stage": 1, "reduce_bucket_size": 500000000,
              "contiguous_gradients": true}})",
           {{"model", "llama-2-7b"}, {"gpus", "8xH100"}, {"pipeline_parallel", 2}}}};
}

class DividedPlan : public ::testing::TestWithParam<Division> {};

TEST_P(DividedPlan, HasEveryMemoryRelevantKeyPriced) {
  const Json plain_options{{"model", "llama-2-7b"}, {"gpus", "8xH100"}};
  Json plain = parse_json(GetParam().config, "ds.json");
  const LintReport divided = lint_text_of(plain.dump(), GetParam().options);
  ASSERT_TRUE(divided.now.has_value()) << divided.not_priced.text << lint_text(divided);
  EXPECT_EQ(divided.count(Severity::error), 0) << lint_text(divided);
  for (const char* degree : {"tensor_parallel", "sequence_parallel_size"}) plain.erase(degree);
  const LintReport whole = lint_text_of(plain.dump(), plain_options);
  ASSERT_TRUE(whole.now.has_value()) << whole.not_priced.text;
  const auto cost_of = [&](const std::string& path) {
    return std::find_if(divided.costs.begin(), divided.costs.end(),
                        [&](const KeyCost& cost) { return cost.path == path; });
  };
  for (const KeyCost& cost : whole.costs) {
    if (!cost.given) continue;
    const auto same = cost_of(cost.path);
    ASSERT_NE(same, divided.costs.end()) << cost.path;
    EXPECT_TRUE(same->costs.has_value() || !same->problem.empty()) << cost.path;
    EXPECT_EQ(cost.costs.has_value(), same->costs.has_value()) << cost.path << same->problem;
  }
}

INSTANTIATE_TEST_SUITE_P(By, DividedPlan, ::testing::ValuesIn(divisions()),
                         [](const auto& division) { return division.param.name; });

TEST(DividedCosts, SayWhatADegreeSaves) {
  for (const char* key : {"tensor_parallel", "sequence_parallel_size"}) {
    const bool tensor = std::string(key) == "tensor_parallel";
    Json config = parse_json(divisions()[tensor ? 0 : 1].config, "ds.json");
    const Json options = divisions()[0].options;
    config["train_micro_batch_size_per_gpu"] = 8;  // the peak is where activations are
    const LintReport report = lint_text_of(config.dump(), options);
    const auto cost = std::find_if(report.costs.begin(), report.costs.end(),
                                   [&](const KeyCost& c) { return c.path == key; });
    ASSERT_NE(cost, report.costs.end()) << key;
    ASSERT_TRUE(cost->costs.has_value()) << cost->problem;
    EXPECT_EQ(cost->value, 4);
    config.erase(key);
    const LintReport without = lint_text_of(config.dump(), options);
    EXPECT_EQ(cost->costs->gpu, report.now->price.gpu - without.now->price.gpu) << key;
    EXPECT_LT(cost->costs->gpu, 0) << key;
  }
}

TEST(DividedCosts, ArePricedOnWhatARankHas) {
  // A bucket of all that a rank trains is as large as its gradients: a quarter of the network's.
  const LintReport report = lint_text_of(
      R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "tensor_parallel": {"autotp_size": 4},
          "zero_optimization": {"stage": 2, "reduce_bucket_size": 2000000000}})",
      {{"model", "llama-2-7b"}, {"gpus", "8xH100"}});
  EXPECT_THAT(rules_of(report, Severity::warning), ::testing::Contains("memory.bucket"));
}

TEST(DividedCosts, NameADegreeThatCannotBeEstimated) {
  const LintReport report = lint_text_of(
      R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "tensor_parallel": {"autotp_size": 3}, "zero_optimization": {"stage": 1}})",
      {{"model", "llama-2-7b"}, {"gpus", "6xH100"}});
  EXPECT_FALSE(report.now.has_value());
  EXPECT_THAT(report.not_priced.text, HasSubstr("parallel.tensor: 3 does not divide the 32"));
}

TEST(DividedCosts, ShowTheStagesOwnDefaultOfOverlap) {
  const LintReport report = lint_text_of(
      R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 3}})",
      {{"model", "llama-3.1-8b"}, {"gpus", "8xH100"}});
  EXPECT_THAT(lint_text(report), HasSubstr("overlap_comm: true by default; false saves"));
}

}  // namespace
}  // namespace shardplan
