// Rollout engines on GPUs of their own: who waits for whom, and what handing weights over takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::apart_rollout_test {
namespace {

/// Llama 3.1 8B on eight GPUs, 64 answers to each, and `rollout`.
Job job_of(const std::string& rollout, const std::string& trainer = "trl") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "llama-3.1-8b", "cluster": "8xH100-80GB",
    "framework": "fsdp2", "precision": "bf16-autocast", "checkpointing": "full",
    "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 4, "generation_batch": 64,
                 "gradient_accumulation": 16, "prompt_length": 512, "new_tokens": 512,
                 "reference": "none"}})",
                         "grpo");
  json["trainer"] = trainer;
  if (trainer == "openrlhf")
    json.merge_patch(parse_json(
        R"({"framework": {"name": "deepspeed", "zero_stage": 3}, "precision": "bf16-master"})",
        "framework"));
  json["workload"]["rollout"] = parse_json(rollout, "rollout");
  return load_job(json, "job.json", {.hardware = &hardware, .directory = ""});
}

TimeEstimate time_of(const std::string& rollout, const std::string& trainer = "trl") {
  static const Calibration calibration = load_calibration();
  return estimate_rlhf(*job_of(rollout, trainer).rlhf, calibration).time;
}

std::string separate(const std::string& more) {
  return R"({"placement": "separate", )" + more + "}";
}

/// Phases are the trainer's GPUs': they add up to the iteration, and so do the engine's seconds.
void expect_whole(const TimeEstimate& t) {
  ASSERT_TRUE(t.groups);
  const GpuGroups& g = *t.groups;
  double phases = 0;
  for (const TimeEstimate::PhaseTime& phase : t.phases) phases += phase.seconds;
  EXPECT_NEAR(phases, t.step_seconds, 1e-9);
  EXPECT_NEAR(g.handover_seconds + g.passes_seconds + g.trainer_waits, t.step_seconds, 1e-9);
  EXPECT_NEAR(g.handover_seconds + g.answers_seconds + g.engine_waits, t.step_seconds, 1e-9);
  EXPECT_NEAR(t.compute_seconds + t.exposed_communication_seconds + t.exposed_copy_seconds +
                  t.optimizer_seconds + t.bubble_seconds + t.idle_seconds,
              t.step_seconds, 1e-6 * t.step_seconds);
  EXPECT_EQ(t.phases.front().phase, Phase::generation);
}

TEST(ApartRollout, TakesTurnsUnlessAnswersMayBeBehind) {
  const TimeEstimate turns = time_of(separate(R"("gpus": 8)"));
  const TimeEstimate ahead = time_of(separate(R"("gpus": 8, "steps_off_policy": 1)"));
  expect_whole(turns);
  expect_whole(ahead);
  const GpuGroups& g = *turns.groups;
  EXPECT_DOUBLE_EQ(g.trainer_waits, g.answers_seconds);
  EXPECT_DOUBLE_EQ(g.engine_waits, g.passes_seconds);
  EXPECT_DOUBLE_EQ(ahead.step_seconds,
                   g.handover_seconds + std::max(g.answers_seconds, g.passes_seconds));
  EXPECT_EQ(std::min(ahead.groups->trainer_waits, ahead.groups->engine_waits), 0);
}

/// Over which weights go to the engines: the trainer's first rank is in a group with all of theirs.
/// How many engines is not known without their GPUs.
TEST(ApartRollout, CountsTheCommunicatorOfTheHandover) {
  const auto taken = [](const std::string& rollout) {
    const Job job = job_of(rollout);
    return estimate_rlhf(*job.rlhf, load_calibration()).device.point;
  };
  const std::int64_t group =
      taken(separate(R"("gpus": 8)")) - taken(separate(R"("sleep_level": 0)"));
  EXPECT_GT(group, std::int64_t{50} << 20);
  EXPECT_LT(group, std::int64_t{1} << 30);
}

/// Answers that end by themselves: as the batch falls, passes get cheaper, but the longest answer
/// has one for each of its tokens.
TEST(ApartRollout, WaitsForTheLongestAnswer) {
  const auto answers = [](const std::string& longest) {
    return time_of(separate(R"("gpus": 8)" + longest)).groups->answers_seconds;
  };
  const double alike = answers("");
  EXPECT_NEAR(answers(R"(, "longest_answer": 512)"), alike, 1e-3 * alike);
  const double tail = answers(R"(, "longest_answer": 4096)");
  EXPECT_GT(tail, 2 * alike);
  EXPECT_LT(tail, 8 * alike);  // 64 answers of 4,096 tokens each
  EXPECT_LT(answers(R"(, "longest_answer": 1024)"), tail);
  EXPECT_NE(error_text([&] { answers(R"(, "longest_answer": 100)"); }).find("at least 512"),
            std::string::npos);
}

/// Partial rollouts wait for no longest answer: eight engines with 64 each in work take as long as
/// for 64 answers of the mean, and compute what these have said once more after a hand-over.
TEST(ApartRollout, GoesOnUnderNewWeights) {
  const auto answers = [](const std::string& more) {
    return time_of(separate(R"("gpus": 8, "steps_off_policy": 1)" + more)).groups->answers_seconds;
  };
  const double alike = answers("");
  const double waits = answers(R"(, "longest_answer": 4096)");
  const double partial = answers(R"(, "longest_answer": 4096, "answers_in_work": 512)");
  EXPECT_LT(partial, 0.6 * waits);
  EXPECT_GT(partial, alike);
  EXPECT_LT(partial, 1.5 * alike);
  EXPECT_LT(partial, answers(R"(, "longest_answer": 4096, "answers_in_work": 128)"));
}

/// Log-probabilities are made on the host, beside the GPU's work: of a small network they take
/// longer, by 3.3 ms a pass at most, however many sequences there are.
TEST(ApartRollout, TakesLongerForLogProbabilities) {
  const auto answers = [](const char* asked, int sequences) {
    Job job = job_of(separate(R"("gpus": 8, "log_probabilities": )" + std::string(asked)), "loop");
    Rlhf& rlhf = *job.rlhf;
    rlhf.generation.workload.micro_batch = sequences;
    return estimate_rlhf(rlhf, load_calibration()).time.groups->answers_seconds;
  };
  EXPECT_GE(answers("true", 8), answers("false", 8));
  EXPECT_LT(answers("true", 256), answers("false", 256) + 512 * 3.4e-3);
}

/// Eight batches together take less than eight times one, until the engine is full; OpenRLHF makes
/// one after the other.
TEST(ApartRollout, AnswersBatchesThatMayWaitTogether) {
  const auto answers = [](const char* steps, const char* trainer) {
    return time_of(separate(R"("gpus": 8, "max_num_seqs": 512, "steps_off_policy": )" +
                            std::string(steps)),
                   trainer)
        .groups->answers_seconds;
  };
  EXPECT_LT(answers("8", "nemo_rl"), 0.8 * answers("1", "nemo_rl"));
  EXPECT_GT(answers("8", "nemo_rl"), answers("1", "nemo_rl") / 8);
  EXPECT_DOUBLE_EQ(answers("8", "openrlhf"), answers("1", "openrlhf"));
}

/// Four times as many engines have a quarter of the answers each, down to the time of one.
TEST(ApartRollout, DividesTheAnswersAmongItsEngines) {
  const auto answers = [](const char* more) {
    return time_of(separate(more)).groups->answers_seconds;
  };
  const double two = answers(R"("gpus": 2, "max_num_seqs": 64)");
  const double eight = answers(R"("gpus": 8, "max_num_seqs": 64)");
  EXPECT_NEAR(two / eight, 4, 0.2);
  // As many GPUs read the weights for all of them together.
  EXPECT_NEAR(answers(R"("gpus": 8, "tensor_parallel": 4)") / eight, 1, 0.1);
}

/// 16.06 GB over one adapter of the sender, 400 Gbit/s at a share of it, and what FSDP2 gathers
/// before; TRL's tensors come to the loader one by one.
TEST(ApartRollout, HandsWeightsOverBetweenMachines) {
  const auto seconds = [](const char* more, const char* trainer) {
    return time_of(separate(more), trainer).groups->handover_seconds;
  };
  const double far = seconds(R"("gpus": 8)", "nemo_rl");
  const double near = seconds(R"("gpus": 8, "same_machines": true)", "nemo_rl");
  EXPECT_GT(far, near);
  const double one_adapter = seconds(R"("gpus": 1)", "trl");
  EXPECT_GT(one_adapter, 16.06e9 / 2 / 50e9 + 291 * 0.3e-3);
  EXPECT_LT(one_adapter, 16.06e9 / 25e9 + 1);
}

/// What it does not sleep with takes no time: there is no level that changes it.
TEST(ApartRollout, NeitherSleepsNorWakes) {
  EXPECT_DOUBLE_EQ(time_of(separate(R"("gpus": 8, "sleep_level": 2)")).step_seconds,
                   time_of(separate(R"("gpus": 8)")).step_seconds);
}

/// And a job that asks for it is told how much it would give back for nobody.
TEST(ApartRollout, SaysThatSleepIsForNobody) {
  const auto warnings = [](const std::string& rollout) {
    const Job job = job_of(rollout);
    std::string all;
    for (const Diagnostic& d : job.diagnostics)
      if (d.severity == Severity::warning) all += to_string(d);
    return all;
  };
  const std::string asleep = warnings(separate(R"("gpus": 8, "sleep_level": 1)"));
  EXPECT_NE(asleep.find("workload.rollout.sleep_level"), std::string::npos) << asleep;
  EXPECT_NE(asleep.find("GiB of each, which nobody takes"), std::string::npos) << asleep;
  EXPECT_EQ(warnings(separate(R"("gpus": 8)")), "");
  EXPECT_EQ(warnings(R"({"sleep_level": 1})"), "");
}

/// The share of the peak is of all GPUs: with as many that wait half of the time, it is less.
TEST(ApartRollout, CountsBothGroupsInTheShareOfThePeak) {
  const TimeEstimate few = time_of(separate(R"("gpus": 8)"));
  const TimeEstimate many = time_of(separate(R"("gpus": 64)"));
  EXPECT_LT(many.mfu, few.mfu);
  EXPECT_GT(many.mfu, 0);
  EXPECT_LT(few.mfu, 0.6);
}

TEST(ApartRollout, CountsItsGpusInThePlan) {
  const Job own = job_of(separate(R"("gpus": 12)"));
  EXPECT_EQ(own.plan.paid_gpus(), 20);
  EXPECT_EQ(own.plan.engine_nodes, 2);
  EXPECT_EQ(job_of(separate(R"("gpus": 12, "same_machines": true)")).plan.engine_nodes, 1.5);
  EXPECT_EQ(job_of("{}").plan.paid_gpus(), 8);
}

}  // namespace
}  // namespace shardplan::apart_rollout_test
