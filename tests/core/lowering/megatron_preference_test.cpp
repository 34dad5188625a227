// Preferences under Megatron-LM, as ms-swift trains them: a reference beside the trained model,
// which scores first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/job.h"
#include "lowering/rlhf/lower.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::megatron_preference_test {
namespace {

using ::testing::HasSubstr;

Job changed(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "qwen2.5-0.5b", "cluster": "2xH100-80GB",
    "framework": "megatron", "checkpointing": "full",
    "parallel": {"tensor": 2, "sequence_parallel": true},
    "workload": {"kind": "rlhf", "algorithm": "dpo", "micro_batch": 4, "sequence_length": 512}})",
                         "dpo");
  json.merge_patch(parse_json(patch, "patch"));
  return load_job(json, "job.json", {.hardware = &hardware, .directory = ""});
}

std::int64_t parameters(const Job& job) {
  std::int64_t bytes = 0;
  for (const Event& e : lower_rlhf(*job.rlhf).resident)
    if (e.category == Category::parameters) bytes += e.bytes * e.count;
  return bytes;
}

TEST(MegatronPreference, HasAReferenceInSixteenBitsBesideTheTrainedModel) {
  const std::int64_t copy = parameters(changed(R"({"workload": {"reference": "copy"}})"));
  const std::int64_t none = parameters(changed(R"({"workload": {"reference": "precomputed"}})"));
  EXPECT_NEAR(static_cast<double>(copy), 2.0 * static_cast<double>(none), 2e5);
}

TEST(MegatronPreference, WithAdaptersTheReferenceIsTheBase) {
  const std::string lora = R"("method": "lora", "lora": {"rank": 8, "targets": ["all-linear"]})";
  const std::int64_t base =
      parameters(changed(R"({"workload": {"reference": "base", )" + lora + "}}"));
  const std::int64_t none = parameters(changed(R"({"workload": {"reference": "precomputed"}})"));
  EXPECT_LT(static_cast<double>(base), 1.05 * static_cast<double>(none));
}

/// The trained model's activations are not there while the reference scores.
TEST(MegatronPreference, ScoresBeforeTheTrainedModelsForwardPass) {
  const Job job = changed("{}");
  const auto parts = rlhf_parts(*job.rlhf);
  int scoring = 0;
  for (const RlhfPart& part : parts)
    if (part.scores) {
      EXPECT_TRUE(part.before_training);
      ++scoring;
    }
  EXPECT_EQ(scoring, 1);
  const Program program = lower_rlhf(*job.rlhf);
  const Played played = play(program);
  EXPECT_EQ(played.at_end, played.profile.at_start);
}

TEST(MegatronPreference, OverStagesIsRefused) {
  EXPECT_THAT(
      error_text([] {
        changed(R"({"parallel": {"tensor": 1, "sequence_parallel": false, "pipeline": 2}})");
      }),
      HasSubstr("parallel.pipeline 1"));
}

}  // namespace
}  // namespace shardplan::megatron_preference_test
