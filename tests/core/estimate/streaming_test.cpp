// Engines that hand answers over while they make others, and engines that judge answers.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimate/judge_time.h"
#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::streaming_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Qwen2.5 1.5B on four GPUs: four updates of 16 answers a GPU to an iteration.
Job job_of(const Json& more) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "qwen2.5-1.5b", "cluster": "4xH100-80GB",
    "framework": "fsdp2", "trainer": "verl", "checkpointing": "full",
    "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 4, "generation_batch": 64,
                 "gradient_accumulation": 4, "prompt_length": 512, "new_tokens": 512,
                 "reference": "none"}})",
                         "grpo");
  json.merge_patch(more);
  return load_job(json, "job.json", {.hardware = &hardware, .directory = ""});
}

Job rollout_of(const std::string& rollout) {
  return job_of(Json{{"workload", {{"rollout", parse_json(rollout, "rollout")}}}});
}

TimeEstimate time_of(const Job& job) {
  static const Calibration calibration = load_calibration();
  return estimate_rlhf(*job.rlhf, calibration).time;
}
TimeEstimate separate(const std::string& more) {
  return time_of(rollout_of(R"({"placement": "separate", "gpus": 4)" + more + "}"));
}

TEST(Streaming, IsBetweenTurnsAndAtOnce) {
  const TimeEstimate turns = separate("");
  const TimeEstimate streams = separate(R"(, "streaming": true)");
  const TimeEstimate ahead = separate(R"(, "steps_off_policy": 1)");
  EXPECT_LE(streams.step_seconds, turns.step_seconds);
  EXPECT_GE(streams.step_seconds, ahead.step_seconds);
  EXPECT_TRUE(streams.groups->at_once);
}

/// In four parts, one for each update: when the last answers come three updates have been made, or
/// the first answers are followed by four of them.
TEST(Streaming, BeginsEachUpdateWithItsAnswers) {
  const TimeEstimate t = separate(R"(, "streaming": true, "answers_in_work": 64)");
  const GpuGroups& g = *t.groups;
  const double update = g.passes_seconds / 4, part = g.answers_seconds / 4;
  const double end = std::max(g.answers_seconds + update, part + g.passes_seconds);
  EXPECT_NEAR(g.passes_seconds + g.trainer_waits, end, 1e-9);
  EXPECT_NEAR(g.answers_seconds + g.engine_waits, end, 1e-9);
  EXPECT_NEAR(t.step_seconds, g.handover_seconds + end, 1e-9);
}

/// Answers that all begin together end together: nothing comes before the last one.
TEST(Streaming, GainsNothingFromOnePart) {
  EXPECT_DOUBLE_EQ(separate(R"(, "streaming": true, "max_num_seqs": 1024)").step_seconds,
                   separate(R"(, "max_num_seqs": 1024)").step_seconds);
}

/// Answers of several lengths come one by one.
TEST(Streaming, GainsMoreFromAnswersOfSeveralLengths) {
  const std::string lengths = R"(, "longest_answer": 2048, "max_num_seqs": 1024)";
  EXPECT_LT(separate(lengths + R"(, "streaming": true)").step_seconds,
            separate(lengths).step_seconds);
}

TEST(Streaming, IsRefusedWhereNothingStreams) {
  EXPECT_THAT(error_text([] { rollout_of(R"({"streaming": true})"); }),
              AllOf(HasSubstr("workload.rollout.streaming"), HasSubstr("placement separate")));
  EXPECT_THAT(error_text([] {
                rollout_of(R"({"placement": "separate", "gpus": 4, "streaming": true,
                               "steps_off_policy": 2})");
              }),
              AllOf(HasSubstr("workload.rollout.streaming"), HasSubstr("steps_off_policy 0")));
}

/// TRL pauses its server with the cache as it is; verl ends answers and asks for them again.
TEST(Continuing, ComputesNothingAgainUnderAPausedEngine) {
  const auto answers = [](const char* trainer) {
    Json more = parse_json(R"({"workload": {"rollout": {"placement": "separate", "gpus": 4,
        "steps_off_policy": 1, "answers_in_work": 256, "max_num_batched_tokens": 8192,
        "completions": 1, "log_probabilities": true, "max_num_seqs": 256}}})",
                           "more");
    more["trainer"] = trainer;
    return time_of(job_of(more)).groups->answers_seconds;
  };
  EXPECT_LT(answers("trl"), 0.99 * answers("verl"));
}

Json judged(int level, double share) {
  Json more = parse_json(R"({"workload": {"algorithm": "ppo",
      "rollout": {"gpu_memory_utilization": 0.3, "sleep_level": 2},
      "models": {"reward": {"model": "qwen2.5-0.5b", "engine": {"engine": "vllm"}}}}})",
                         "judged");
  Json& work = more["workload"];
  if (level == 0) work["rollout"]["sleep_level"] = 0;
  Json& engine = work["models"]["reward"]["engine"];
  engine["sleep_level"] = level;
  engine["gpu_memory_utilization"] = share;
  return more;
}

TEST(Judge, TakesTimeAndLongerWhenItWakes) {
  const Calibration calibration = load_calibration();
  const auto seconds = [&](int level) {
    return estimate_judge_time(*job_of(judged(level, 0.2)).rlhf, calibration.time).step_seconds;
  };
  const double awake = seconds(0);
  EXPECT_GT(awake, 0);
  EXPECT_GT(seconds(2), awake);
  Json more = judged(0, 0.2);
  const double with = time_of(job_of(more)).step_seconds;
  more["workload"]["models"]["reward"] = Json{{"model", "qwen2.5-0.5b"}};
  more["workload"]["rewards"] = "function";
  more["workload"]["models"].erase("reward");
  EXPECT_NEAR(with - time_of(job_of(more)).step_seconds, awake, 0.05 * awake);
}

/// Level 1 has the judge's weights on the host: they come and go over its link.
TEST(Judge, CopiesItsWeightsFromTheHost) {
  const auto generation = [](int level) {
    const TimeEstimate t = time_of(job_of(judged(level, 0.2)));
    return t.exposed_copy_seconds;
  };
  EXPECT_GT(generation(1), generation(2));
}

TEST(Judge, IsRefusedBesideAnotherThatLeavesNoRoom) {
  EXPECT_THAT(error_text([] { job_of(judged(0, 0.75)); }),
              AllOf(HasSubstr("workload.models.reward.engine.gpu_memory_utilization"),
                    HasSubstr("at most 0.70")));
  EXPECT_EQ(error_text([] { job_of(judged(0, 0.7)); }), "no error");
  EXPECT_EQ(error_text([] { job_of(judged(1, 0.75)); }), "no error");
}

}  // namespace
}  // namespace shardplan::streaming_test
