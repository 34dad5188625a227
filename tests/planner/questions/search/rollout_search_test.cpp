// A search among ways to run reinforcement learning: what it says is what its fields mean, it
// trains on as many samples, and no share of a GPU that was not asked is faster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "questions/estimate_job.h"
#include "questions/search/rollout_search.h"
#include "render/rollout_search_text.h"

namespace shardplan::rollout_search_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}
const Calibration& calibration() {
  static const Calibration read = load_calibration();
  return read;
}

Job loaded(const Json& json) {
  return load_job(json, "job.json", {.hardware = &hardware()});
}

Json grpo() {
  return {{"model", "qwen2.5-1.5b"},
          {"cluster", "4xH100-SXM-80GB"},
          {"framework", "fsdp1"},
          {"trainer", "verl"},
          {"precision", "bf16-autocast"},
          {"checkpointing", "full"},
          {"workload",
           {{"kind", "rlhf"},
            {"algorithm", "grpo"},
            {"micro_batch", 2},
            {"gradient_accumulation", 8},
            {"prompt_length", 512},
            {"new_tokens", 1024},
            {"rollout", {{"engine", "vllm"}, {"gpu_memory_utilization", 0.5}}}}}};
}

RolloutFound searched(const Json& json, std::vector<std::int64_t> micro_batches = {},
                      std::vector<std::int64_t> degrees = {}) {
  const Job job = loaded(json);
  const RolloutSpace space(job, json, std::move(micro_batches), std::move(degrees));
  return search_rollouts(json, space, calibration(), loaded);
}

Json with(Json json, const std::vector<FieldEdit>& fields) {
  for (const FieldEdit& edit : fields) set_field(json, edit.pointer, edit.value);
  return json;
}

std::int64_t samples(const Json& json) {
  const Job job = loaded(json);
  const Json& w = json.at("workload");
  return w.at("micro_batch").get<std::int64_t>() *
         w.at("gradient_accumulation").get<std::int64_t>() *
         job.rlhf->roles.front().plan.cluster.world();
}

TEST(RolloutSearch, SaysWhatItsFieldsMean) {
  const RolloutFound found = searched(grpo());
  ASSERT_GE(found.choices.size(), 10U);
  const double fastest = found.choices.front().estimate.time.step_seconds;
  EXPECT_FALSE(found.choices.front().point.sharing.further_behind);
  EXPECT_TRUE(found.choices.back().point.sharing.further_behind);
  EXPECT_LT(fastest, found.asked->time.step_seconds);
  for (const RolloutChoice& c : found.choices) {
    const Json said = with(grpo(), c.fields);
    const Estimate again = estimate_job(loaded(said), calibration());
    EXPECT_EQ(again.device.upper, c.estimate.device.upper) << said.dump();
    EXPECT_DOUBLE_EQ(again.time.step_seconds, c.estimate.time.step_seconds) << said.dump();
    EXPECT_EQ(again.verdict.gpu.fit, Fit::fits) << said.dump();
    EXPECT_EQ(samples(said), samples(grpo())) << said.dump();
    EXPECT_TRUE(c.point.sharing.further_behind || c.estimate.time.step_seconds >= 0.994 * fastest);
  }
}

// Every batch, degree and hundredth of one way to share the GPUs, one after the other.
TEST(RolloutSearch, NoOtherShareIsFaster) {
  Json json = grpo();
  json["workload"]["gradient_accumulation"] = 4;
  const Job job = loaded(json);
  const RolloutSpace space(job, json, {}, {1, 2});
  const RolloutFound found = searched(json, {}, {1, 2});
  const RolloutChoice& best = found.choices.front();
  std::size_t fitting = 0;
  for (const RolloutPoint& point : space.points(best.point.sharing))
    for (std::int64_t hundredths = 5; hundredths <= 95; hundredths += 3) {
      try {
        const Estimate e =
            estimate_job(loaded(with(json, space.fields(point, hundredths))), calibration());
        if (e.verdict.gpu.fit != Fit::fits) continue;
        ++fitting;
        EXPECT_GE(e.time.step_seconds * 1.0041, best.estimate.time.step_seconds)
            << point.micro << " " << point.tensor << " " << hundredths;
      } catch (const InputError&) {  // no room for a sequence
      }
    }
  EXPECT_GE(fitting, 50U);
}

TEST(RolloutSearch, SearchesWhatItIsAskedFor) {
  for (const RolloutChoice& c : searched(grpo(), {4}, {2}).choices) {
    EXPECT_EQ(c.point.micro, 4);
    EXPECT_EQ(c.point.tensor, 2);
  }
}

TEST(RolloutSearch, OffersAnEngineToAJobWithoutOne) {
  Json json = grpo();
  json["workload"].erase("rollout");
  const RolloutFound found = searched(json);
  EXPECT_NE(found.choices.front().point.sharing.place, nullptr);
  const std::string text = rollout_search_text(loaded(json), json, found, 20);
  EXPECT_THAT(text, HasSubstr("workload.rollout.engine: \"vllm\""));
  EXPECT_THAT(text, HasSubstr("the trainer's own model"));
}

TEST(RolloutSearch, SaysThatNoneFits) {
  Json json = grpo();
  json["model"] = "llama-3.1-8b";
  json["cluster"] = "1xA100-40GB";
  json["workload"]["gradient_accumulation"] = 1;
  json["framework"] = "single";
  const RolloutFound found = searched(json);
  EXPECT_TRUE(found.choices.empty());
  const std::string text = rollout_search_text(loaded(json), json, found, 10);
  EXPECT_THAT(text, HasSubstr("ways fits"));
  EXPECT_THAT(text, HasSubstr("The one that comes closest"));
}

/// Its fields are of a job that does not fit, and no way that was tried lacks less than it.
TEST(RolloutSearch, ShowsTheNearestWhereNoneFits) {
  Json json = grpo();
  json["model"] = "llama-3.1-8b";
  json["cluster"] = "1xA100-40GB";
  json["workload"]["gradient_accumulation"] = 1;
  json["framework"] = "single";
  const RolloutFound found = searched(json);
  ASSERT_TRUE(found.closest);
  const Estimate again = estimate_job(loaded(with(json, found.closest->fields)), calibration());
  EXPECT_FALSE(again.verdict.fits);
  EXPECT_EQ(again.device.upper, found.closest->estimate.device.upper);
  ASSERT_TRUE(found.asked);
  EXPECT_LE(again.device.upper, found.asked->device.upper);
  EXPECT_FALSE(searched(grpo(), {4}, {2}).closest);
}

}  // namespace
}  // namespace shardplan::rollout_search_test
