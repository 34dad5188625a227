// What a run prints about its time on GPUs.
#include "record/comparison.h"

#include <gmock/gmock.h>

#include "validator/launch/prediction.h"

namespace shardplan::validator::comparison_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TEST(Comparison, says_what_the_gpu_could_have_done_and_what_it_did) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const EngineJob engine = load_engine_job(
      testing::job("gpt2", 0, "1xH200", "bf16-master", "none", 1, 64), "test.json", kHardware);
  Estimate predicted = estimate(engine.job.model, engine.plan(), load_calibration());
  double phases = 0;
  for (const double seconds : predicted.time.speed_of_light_of_phases) {
    EXPECT_GT(seconds, 0);
    phases += seconds;
  }
  EXPECT_NEAR(phases, predicted.time.speed_of_light_seconds, 1e-9);
  predicted.time.step_seconds = 0.2;
  predicted.time.speed_of_light_seconds = 0.1;
  predicted.time.mfu = 0.4;
  predicted.time.speed_of_light_of_phases = {0.03, 0.06, 0.01};
  RunReport report;
  report.ranks.resize(1);
  report.ranks[0].phase_seconds = {0.06, 0.08, 0.1};
  StepResult step;
  step.seconds = 0.25;
  report.steps.assign(static_cast<std::size_t>(engine.run.steps), step);
  const std::string text = comparison_text(engine, predicted, report);
  EXPECT_THAT(text, ::testing::ContainsRegex("of the fastest possible +50.0 % +40.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("MFU +40.0 % +32.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("backward +60.0 ms +80.0 ms +75.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("forward, loss and head +30.0 ms +60.0 ms +50.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("clipping and optimizer +10.0 ms +100 ms +10.0 %"));
  EXPECT_THAT(text, HasSubstr("the fastest possible: 100 ms at the datasheet's rates"));
}

}  // namespace
}  // namespace shardplan::validator::comparison_test
