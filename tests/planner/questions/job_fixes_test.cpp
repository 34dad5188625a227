// Fixes of jobs that generate, and of jobs of several models: each is a few fields of the job, and
// the job with them must need what the fix says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "load/calibration.h"
#include "load/hardware.h"
#include "questions/estimate_job.h"
#include "questions/fixes.h"
#include "report/messages.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::Not;

class JobFixes : public testing::Test {
 protected:
  Job loaded(const Json& json) const {
    return load_job(json, "job.json", {.hardware = &hardware_});
  }

  std::vector<Fix> fixes_of(const Json& json, std::size_t most = kAllFixes) const {
    const Job job = loaded(json);
    return find_fixes(job, {json, "job.json", {.hardware = &hardware_}},
                      estimate_job(job, calibration_), calibration_, {.most = most});
  }

  static std::vector<std::string> singles(const std::vector<Fix>& fixes) {
    std::vector<std::string> what;
    for (const Fix& fix : fixes)
      if (fix.changes.size() == 1) what.push_back(fix.changes.front().what);
    return what;
  }

  void expect_as_said(const Json& json) const {
    const Estimate now = estimate_job(loaded(json), calibration_);
    for (const Fix& fix : fixes_of(json)) {
      const bool of_plan = std::any_of(fix.changes.begin(), fix.changes.end(),
                                       [](const Change& c) { return c.fields.empty(); });
      if (of_plan) continue;
      const Json changed = with_fields(json, fix.changes);
      const Estimate after = estimate_job(loaded(changed), calibration_);
      EXPECT_EQ(after.device.point, fix.after.device.point) << changed.dump();
      EXPECT_EQ(now.device.point - after.device.point, fix.gpu_saved) << changed.dump();
      EXPECT_GT(fix.gpu_saved, 0) << changed.dump();
      EXPECT_GT(fix.slowdown, 0) << changed.dump();
      for (const Change& change : fix.changes) {
        EXPECT_FALSE(change.how.empty()) << change.what;
        for (const char* language : {"ja", "ko"})
          EXPECT_TRUE(report::Messages(language).phrase(change.what)) << change.what;
      }
    }
  }

  const HardwareCatalog hardware_ = load_hardware_catalog();
  const Calibration calibration_ = load_calibration();
  const Json training_ = Json::parse(
      R"({"schema": "shardplan.job/1", "model": "qwen2.5-1.5b", "cluster": "1xRTX4090",
          "checkpointing": "full",
          "workload": {"kind": "train", "micro_batch": 1, "sequence_length": 2048}})");
  const Json serving_ = Json::parse(
      R"({"model": "llama-3.1-8b", "cluster": "1xRTX4090", "framework": "single",
          "precision": "bf16-pure",
          "workload": {"kind": "inference", "batch": 16, "prompt_length": 4096,
                       "new_tokens": 256}})");
  const Json ppo_ = Json::parse(
      R"({"model": "opt-6.7b", "cluster": "4xA100-SXM4-40GB",
          "framework": {"name": "deepspeed", "zero_stage": 1}, "precision": "bf16-master",
          "workload": {"kind": "rlhf", "algorithm": "ppo", "micro_batch": 8, "prompt_length": 512,
                       "new_tokens": 512}})");
  /// Of short sequences. Passes over long ones take the GPU so long that the host has them gather
  /// all models under stage 3 before the first is through, and what they gathered waits to be
  /// freed.
  Json short_ppo() const {
    Json json = ppo_;
    json["workload"]["prompt_length"] = json["workload"]["new_tokens"] = 128;
    return json;
  }
};

TEST_F(JobFixes, GenerationIsOfferedItsFormatsSizesAndPlaces) {
  const std::vector<std::string> what = singles(fixes_of(serving_));
  for (const char* change :
       {"weights in int8", "weights in nf4", "KV cache in fp8", "a batch of 8", "a batch of 1",
        "prompts of 2048 tokens", "each layer over 2 GPUs (DeepSpeed-Inference)",
        "weights on the host (ZeRO-Inference)"})
    EXPECT_THAT(what, Contains(change));
  EXPECT_THAT(what, Not(Contains("activation checkpointing on every block")));
}

TEST_F(JobFixes, OfGenerationAreWhatTheChangedJobNeeds) {
  expect_as_said(serving_);
}

TEST_F(JobFixes, SomethingMakesAJobFitThatDoesNot) {
  for (const Json& json : {serving_, ppo_}) {
    ASSERT_FALSE(estimate_job(loaded(json), calibration_).verdict.fits) << json.dump();
    const std::vector<Fix> fixes = fixes_of(json);
    ASSERT_FALSE(fixes.empty());
    EXPECT_TRUE(fixes.front().after.verdict.fits) << fixes.front().changes.front().what;
  }
}

TEST_F(JobFixes, SeveralModelsAreOfferedTheirStatesTurnsAndBatches) {
  const std::vector<std::string> what = singles(fixes_of(ppo_));
  for (const char* change :
       {"optimizer states on the host", "frozen models on the host while idle",
        "critic and frozen models on the host while idle",
        "activation checkpointing on every block", "micro-batch 4 with 2 accumulation steps",
        "LoRA of rank 16 in place of all the actor's parameters"})
    EXPECT_THAT(what, Contains(change));
  EXPECT_THAT(singles(fixes_of(short_ppo())), Contains("ZeRO stage 3"));
}

TEST_F(JobFixes, OfSeveralModelsAreWhatTheChangedJobNeeds) {
  expect_as_said(ppo_);
}

/// The first fix that is another share for an engine; nullptr: none is.
const Fix* share_of(const std::vector<Fix>& fixes) {
  const auto found = std::ranges::find_if(
      fixes, [](const Fix& fix) { return fix.changes.front().subject == "share"; });
  return found == fixes.end() ? nullptr : &*found;
}

/// An engine that leaves the trainer no room: the largest share that does, in hundredths.
TEST_F(JobFixes, AnEngineBesideATrainerIsToldItsShare) {
  Json json = Json::parse(
      R"({"model": "qwen2.5-1.5b", "cluster": "2xH100-80GB", "framework": "fsdp2", "trainer": "verl",
          "precision": "bf16-autocast", "checkpointing": "full",
          "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 4, "prompt_length": 512,
                       "new_tokens": 512,
                       "rollout": {"gpu_memory_utilization": 0.97, "sleep_level": 0}}})");
  ASSERT_FALSE(estimate_job(loaded(json), calibration_).verdict.fits);
  const std::vector<Fix> fixes = fixes_of(json);
  const Fix* share = share_of(fixes);
  ASSERT_NE(share, nullptr);
  EXPECT_TRUE(share->after.verdict.fits);
  const double most = share->changes.front().fields.front().value.get<double>();
  const auto fits_with = [&](double value) {
    json["workload"]["rollout"]["gpu_memory_utilization"] = value;
    return estimate_job(loaded(json), calibration_).verdict.fits;
  };
  EXPECT_TRUE(fits_with(most));
  EXPECT_FALSE(fits_with(most + 0.01));
  json["workload"]["rollout"]["gpu_memory_utilization"] = 0.97;
  EXPECT_THAT(singles(fixes), Contains("the engine asleep while others work"));
  expect_as_said(json);
}

/// Two engines that stay awake cannot share a GPU with more than all of it: the one that takes more
/// is told what would do.
TEST_F(JobFixes, TwoEnginesOnTheSameGpusAreToldWhatTheyCanShare) {
  Json json = Json::parse(
      R"({"model": "qwen2.5-1.5b", "cluster": "2xH100-80GB", "framework": "fsdp2", "trainer": "verl",
          "precision": "bf16-autocast", "checkpointing": "full",
          "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 4, "prompt_length": 512,
                       "new_tokens": 512,
                       "rollout": {"gpu_memory_utilization": 0.4, "sleep_level": 1},
                       "models": {"reward": {"model": "qwen2.5-1.5b",
                                             "engine": {"gpu_memory_utilization": 0.7}}}}})");
  ASSERT_FALSE(estimate_job(loaded(json), calibration_).verdict.fits);
  const std::vector<Fix> fixes = fixes_of(json);
  const Fix* share = share_of(fixes);
  ASSERT_NE(share, nullptr);
  EXPECT_TRUE(share->after.verdict.fits);
  EXPECT_EQ(share->changes.front().fields.front().pointer,
            "/workload/models/reward/engine/gpu_memory_utilization");
  EXPECT_THAT(singles(fixes), Contains("the engine that judges asleep while others work"));
}

/// Both can sleep in turns: one change does not exclude the other.
TEST_F(JobFixes, TwoEnginesThatStayAwakeAreToldToSleepBoth) {
  const Json engine{{"gpu_memory_utilization", 0.5}, {"sleep_level", 0}};  // more is refused
  Json json = Json::parse(
      R"({"model": "qwen2.5-7b", "cluster": "2xH100-80GB", "framework": "fsdp2", "trainer": "verl",
          "precision": "bf16-autocast", "checkpointing": "full",
          "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 1, "prompt_length": 512,
                       "new_tokens": 512, "models": {"reward": {"model": "qwen2.5-7b"}}}})");
  json["workload"]["rollout"] = json["workload"]["models"]["reward"]["engine"] = engine;
  const std::vector<Fix> fixes = fixes_of(json);
  ASSERT_TRUE(fixes.front().after.verdict.fits);
  std::vector<std::string> said;
  for (const Change& change : fixes.front().changes) said.push_back(change.what);
  EXPECT_THAT(said, Contains("the engine asleep while others work"));
  EXPECT_THAT(said, Contains("the engine that judges asleep while others work"));
  expect_as_said(json);
}

/// Where another share alone is not enough, one beside what else gives nothing up.
TEST_F(JobFixes, AnEngineThatStaysAwakeIsToldItsShareBesideOtherChanges) {
  const Json json = Json::parse(
      R"({"model": "qwen2.5-7b", "cluster": "8xH100-80GB", "framework": "fsdp2", "trainer": "verl",
          "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 4, "prompt_length": 1024,
                       "new_tokens": 3072,
                       "rollout": {"gpu_memory_utilization": 0.9, "sleep_level": 0}}})");
  const std::vector<Fix> fixes = fixes_of(json, 1);
  ASSERT_FALSE(fixes.empty());
  EXPECT_TRUE(fixes.front().after.verdict.fits);
  std::vector<std::string> subjects;
  for (const Change& change : fixes.front().changes) subjects.push_back(change.subject);
  EXPECT_THAT(subjects, Contains("share"));
  EXPECT_THAT(subjects, Not(Contains("method")));  // LoRA gives up trained parameters
}

/// A share without room for one sequence: the least that has it.
TEST_F(JobFixes, AServingEngineIsToldItsShareAndItsGpus) {
  const auto served = [](double share) {
    return Json{{"model", "llama-3.1-8b"},
                {"cluster", "4xH100-80GB"},
                {"workload", Json{{"kind", "inference"},
                                  {"prompt_length", 2048},
                                  {"new_tokens", 256},
                                  {"engine", Json{{"gpu_memory_utilization", share}}}}}};
  };
  const std::vector<Fix> fixes = fixes_of(served(0.1));
  ASSERT_FALSE(fixes.empty());
  EXPECT_TRUE(fixes.front().after.verdict.fits);
  const Fix* share = share_of(fixes);
  ASSERT_NE(share, nullptr);
  const double least = share->changes.front().fields.front().value.get<double>();
  EXPECT_TRUE(estimate_job(loaded(served(least)), calibration_).verdict.fits);
  EXPECT_FALSE(estimate_job(loaded(served(least - 0.01)), calibration_).verdict.fits);
  for (const char* change : {"each layer over 2 GPUs", "each layer over 4 GPUs"})
    EXPECT_THAT(singles(fixes), Contains(change));
}

TEST_F(JobFixes, AreWrittenIntoADsConfigThatIsInTheJob) {
  Json json = short_ppo();
  json["framework"] = Json::parse(
      R"({"name": "deepspeed", "ds_config": {"bf16": {"enabled": true},
          "zero_optimization": {"stage": 1}}})");
  json.erase("precision");
  const std::vector<Fix> fixes = fixes_of(json);
  const auto stage_3 = std::find_if(fixes.begin(), fixes.end(), [](const Fix& fix) {
    return fix.changes.size() == 1 && fix.changes.front().what == "ZeRO stage 3";
  });
  ASSERT_NE(stage_3, fixes.end());
  EXPECT_EQ(with_fields(json, stage_3->changes)["framework"]["ds_config"]["zero_optimization"],
            Json({{"stage", 3}}));
}

TEST_F(JobFixes, AreFoundForEveryExampleOfAnotherKindThanTraining) {
  int jobs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/jobs")) {
    const Json json = read_json_file(entry.path().string());
    if (json.at("workload").value("kind", "train") == "train") continue;
    EXPECT_FALSE(fixes_of(json).empty()) << entry.path();
    expect_as_said(json);
    ++jobs;
  }
  EXPECT_GE(jobs, 5);
}

TEST_F(JobFixes, OfTrainingAreWhatTheySay) {
  expect_as_said(training_);
  const std::vector<std::string> what = singles(fixes_of(training_));
  for (const char* change :
       {"optimizer states in 8 bits", "parameters, gradients and states in bf16",
        "QLoRA: LoRA over a base in 4 bits",
        "optimizer states and parameters on the host, with DeepSpeed ZeRO-3"})
    EXPECT_THAT(what, Contains(change));
}

/// A base that was loaded in fp32, as TRL's trainer loads one unless it is told a type.
TEST_F(JobFixes, OfAdaptersHaveTheFrozenModelIn16Bits) {
  Json json = training_;
  json["workload"]["method"] = "lora";
  json["framework"] = "fsdp2";
  json["precision"] = "bf16-autocast";
  EXPECT_THAT(singles(fixes_of(json)), Contains("the frozen model in bf16"));
  json.erase("precision");
  EXPECT_THAT(singles(fixes_of(json)), Not(Contains("the frozen model in bf16")));
}

/// As long parts as the network is wide (1,536), where sequences are longer, and who has them.
TEST_F(JobFixes, OfLongSequencesHaveFeedForwardsInParts) {
  constexpr const char* kTiles = "feed-forwards in 22 parts of the sequence";
  Json json = training_;
  json["workload"]["sequence_length"] = 32768;
  json["kernels"] = "liger";  // else logits are what there is most of
  json["framework"] = "single";
  const std::vector<Fix> fixes = fixes_of(json);
  EXPECT_THAT(singles(fixes), Contains(kTiles));
  for (const Fix& fix : fixes) {
    if (fix.changes.front().what != kTiles) continue;
    Json said = json;
    said["mlp_tiles"] = 22;
    EXPECT_EQ(estimate_job(loaded(said), calibration_).device.point, fix.after.device.point);
    EXPECT_GT(fix.slowdown, 1) << "each feed-forward runs once more";
  }
  json["trainer"] = "hf_trainer";
  EXPECT_THAT(singles(fixes_of(json)), Not(Contains(kTiles)));
  Json narrow = training_;
  narrow["workload"]["sequence_length"] = 1024;
  EXPECT_THAT(singles(fixes_of(narrow)), Not(Contains(testing::HasSubstr("feed-forwards"))));
}

/// Each part is laid out by itself, so that the answer would take as long as the sequence is.
TEST_F(JobFixes, OfVeryLongSequencesHaveNoMorePartsThanSaveAnything) {
  Json json = training_;
  json["workload"]["sequence_length"] = 10'000'000;
  json["kernels"] = "liger";
  json["framework"] = "single";
  EXPECT_THAT(singles(fixes_of(json)), Contains("feed-forwards in 24 parts of the sequence"));
}

/// Liger has nothing for GPT-2.
TEST_F(JobFixes, HaveATiledLossWhereLigerHasNone) {
  Json json = training_;
  json["model"] = "gpt2";
  json["framework"] = "single";
  json["workload"] = {{"kind", "train"}, {"micro_batch", 64}, {"sequence_length", 1024}};
  EXPECT_THAT(singles(fixes_of(json)), Contains("the loss and the head over parts of the rows"));
  expect_as_said(json);
  json["loss"] = "tiled";
  json["model"] = "phi-2";
  EXPECT_THROW(loaded(json), InputError) << "its head has a bias, whose gradient nobody has traced";
}

TEST_F(JobFixes, OfTrainingThatFitComeInOrderOfWhatTheyGiveUp) {
  const auto gives_up = [](const Fix& fix) {
    Sacrifice most = Sacrifice::nothing;
    for (const Change& change : fix.changes) most = std::max(most, change.sacrifice);
    return most;
  };
  const std::vector<Fix> fixes = fixes_of(training_);
  std::size_t fitting = 0;
  while (fitting < fixes.size() && fixes[fitting].after.verdict.fits) ++fitting;
  ASSERT_GT(fitting, 2U);
  for (std::size_t i = 1; i < fitting; ++i)
    EXPECT_LE(gives_up(fixes[i - 1]), gives_up(fixes[i])) << fixes[i].changes.front().what;
  EXPECT_EQ(gives_up(fixes.front()), Sacrifice::nothing);
}

TEST_F(JobFixes, OfTrainingNameOneLargerClusterThatIsEnough) {
  std::vector<const Fix*> larger;
  const std::vector<Fix> fixes = fixes_of(training_);
  for (const Fix& fix : fixes)
    if (fix.changes.size() == 1 && fix.changes.front().sacrifice == Sacrifice::more_gpus)
      larger.push_back(&fix);
  ASSERT_EQ(larger.size(), 1U);
  EXPECT_TRUE(larger.front()->after.verdict.fits);
  EXPECT_EQ(larger.front()->changes.front().what, "FSDP2 over 2 GPUs");
}

/// Machines of eight, one after the other, not as many again.
TEST_F(JobFixes, OfTrainingNameTheFewestMachinesThatAreEnough) {
  Json job = training_;
  job["model"] = "llama-2-70b";
  job["cluster"] = "8xH100";
  job["framework"] = "deepspeed";
  job["checkpointing"] = "full";
  job["workload"] = Json{{"micro_batch", 1}, {"sequence_length", 2048}};
  for (const Fix& fix : fixes_of(job)) {
    if (fix.changes.front().sacrifice != Sacrifice::more_gpus || fix.changes.size() != 1) continue;
    EXPECT_EQ(fix.changes.front().what, "the same over 24 GPUs");
    EXPECT_EQ(fix.changes.front().how, "3x8xH100-SXM5-80GB");
    EXPECT_TRUE(fix.after.verdict.fits);
    return;
  }
  FAIL() << "no larger cluster";
}

TEST_F(JobFixes, OfTrainingOfferLigerWhereLogitsAreLarge) {
  Json job = training_;
  job["workload"]["micro_batch"] = 8;
  const char* liger = "Liger's fused kernels, with a loss that never has all logits";
  EXPECT_THAT(singles(fixes_of(job)), Contains(liger));
  job["model"] = "t5-base";  // Liger has no kernels for it
  EXPECT_THAT(singles(fixes_of(job)), Not(Contains(liger)));
}

/// What is left out because nobody asked for so many must not be what ranks first.
TEST_F(JobFixes, TheFirstFewAreThoseOfTheWholeList) {
  const auto told = [](const std::vector<Fix>& fixes) {
    std::vector<std::string> lines;
    for (const Fix& fix : fixes) {
      std::string line = std::to_string(fix.after.device.upper);
      for (const Change& change : fix.changes) line += " " + change.what;
      lines.push_back(line);
    }
    return lines;
  };
  Json roomy = training_, cramped = training_;
  roomy["cluster"] = "1xH100";
  cramped["cluster"] = "1x1GB";
  for (const Json& json : {training_, roomy, cramped, serving_, ppo_}) {
    const std::vector<std::string> all = told(fixes_of(json));
    for (const std::size_t most : {1U, 3U, 5U, 8U}) {
      std::vector<std::string> first = all;
      if (first.size() > most) first.resize(most);
      EXPECT_EQ(told(fixes_of(json, most)), first) << json.dump();
    }
  }
}

/// The fewest checkpointed blocks that are enough: with one less the job does not fit.
TEST_F(JobFixes, OfTrainingCheckpointNoMoreBlocksThanItTakes) {
  const Json job{{"model", "llama-3.2-1b"},
                 {"cluster", "1x40GB"},
                 {"precision", "bf16-pure"},
                 {"framework", "single"},
                 {"workload", {{"micro_batch", 5}, {"sequence_length", 2048}}}};
  ASSERT_FALSE(estimate_job(loaded(job), calibration_).verdict.fits);
  std::int64_t count = 0;
  for (const Fix& fix : fixes_of(job))
    if (fix.changes.size() == 1 && fix.changes.front().how.starts_with("--checkpointing blocks:")) {
      EXPECT_TRUE(fix.after.verdict.fits);
      count = std::stoll(fix.changes.front().how.substr(fix.changes.front().how.rfind(':') + 1));
    }
  ASSERT_GT(count, 1);
  ASSERT_LT(count, 16);
  const auto fits = [&](std::int64_t blocks) {
    Json with = job;
    with["checkpointing"] = Json{{"policy", "blocks"}, {"count", blocks}};
    return estimate_job(loaded(with), calibration_).verdict.fits;
  };
  EXPECT_TRUE(fits(count));
  EXPECT_FALSE(fits(count - 1));
  EXPECT_THAT(singles(fixes_of(job)),
              Contains("selective checkpointing, with every second product computed again"));
  const report::Messages korean("ko");
  for (const Fix& fix : fixes_of(job))
    for (const Change& change : fix.changes) EXPECT_TRUE(korean.phrase(change.what)) << change.what;
}

TEST_F(JobFixes, OfTrainingKeepTheAdaptersThatAJobHas) {
  Json job = training_;
  job["workload"]["method"] = "lora";
  job["workload"]["lora"] = Json{{"rank", 64}, {"targets", {"q_proj"}}};
  for (const Fix& fix : fixes_of(job)) {
    const Json changed = with_fields(job, fix.changes);
    EXPECT_EQ(changed.at("workload").at("lora").at("rank"), 64) << changed.dump();
  }
  EXPECT_THAT(singles(fixes_of(job)), Contains("QLoRA: LoRA over a base in 4 bits"));
}

}  // namespace
}  // namespace shardplan
