// OpenRLHF's models: log-probabilities over fp32 logits, when its cache is given back, and that of
// TRL's and verl's trainers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "lowering/rlhf/lower.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::openrlhf_test {
namespace {

constexpr std::int64_t kVocabulary = 151936;  // Qwen 2.5 0.5B

Job changed(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "qwen2.5-0.5b", "cluster": "8xH100-80GB",
    "framework": {"name": "deepspeed", "zero_stage": 3}, "trainer": "openrlhf",
    "checkpointing": "full",
    "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 8, "prompt_length": 512,
                 "new_tokens": 512, "reference": "none",
                 "rollout": {"gpu_memory_utilization": 0.4, "sleep_level": 1}}})",
                         "openrlhf");
  json.merge_patch(parse_json(patch, "patch"));
  return load_job(json, "job.json", {.hardware = &hardware, .directory = ""});
}

std::int64_t peak(const std::string& workload, Phase phase) {
  return simulate_memory(lower_rlhf(*changed(R"({"workload": )" + workload + "}").rlhf))
      .of(phase)
      .peak;
}

std::int64_t times_emptied(const std::string& patch) {
  const Program program = lower_rlhf(*changed(patch).rlhf);
  return std::ranges::count(program.events, Event::Kind::empty_cache, &Event::kind);
}

/// Of one more sample fp32 logits and their gradient, 8 bytes a logit, and at most 2 of their
/// 16-bit gradient; scores have the 16-bit logits beside fp32 ones, and no gradient.
TEST(OpenRlhf, TakesLogProbabilitiesOverLogitsInFp32) {
  const std::int64_t logits = std::int64_t{8} * 1024 * kVocabulary;
  const auto more = [](Phase phase) {
    return peak(R"({"micro_batch": 16})", phase) - peak(R"({"micro_batch": 8})", phase);
  };
  EXPECT_GE(more(Phase::actor_training), 8 * logits);
  EXPECT_LT(more(Phase::actor_training), 11 * logits);
  EXPECT_GE(more(Phase::experience), 6 * logits);
  EXPECT_LT(more(Phase::experience), 8 * logits);
}

/// The entropy reads the fp32 logits after the loss.
TEST(OpenRlhf, KeepsLogitsForTheEntropy) {
  const std::string asked = R"({"entropy": "compiled", "scoring_entropy": "none"})";
  EXPECT_GT(peak(asked, Phase::actor_training), peak("{}", Phase::actor_training));
  EXPECT_EQ(peak(asked, Phase::experience), peak("{}", Phase::experience));
}

/// Supervised training takes the same loss; a loop keeps what log_softmax has beside fp32 logits.
TEST(OpenRlhf, SupervisesByTheSameLoss) {
  const auto at_peak = [](const char* trainer) {
    Job job = changed(std::string(R"({"trainer": ")") + trainer + R"(", "workload": null})");
    job.plan.workload.micro_batch = 8;
    const RankModel rank(job.model, job.plan);
    return simulate_memory(lower(rank.model(), job.plan, rank.run(), 0)).peak;
  };
  EXPECT_LT(at_peak("openrlhf"), at_peak("loop"));
}

/// ppo_actor.py: before weights go to the engine and after, before training and after;
/// experience_maker.py: after each model's scores; what goes to the host empties once more a turn.
TEST(OpenRlhf, GivesItsCacheBackAroundEachTurn) {
  EXPECT_EQ(times_emptied("{}"), 2 + 1 + 2);
  EXPECT_EQ(times_emptied(R"({"workload": {"reference": "copy"}})"), 2 + 2 + 2);
  EXPECT_EQ(times_emptied(R"({"workload": {"algorithm": "ppo", "reference": "copy"}})"),
            2 + 4 + 2 * 2);
  EXPECT_EQ(times_emptied(R"({"workload": {"models": {"actor": {"idle": "optimizer"}}}})"),
            2 + 1 + 2 + 1);
}

/// vllm_generation.py: before the engine wakes; and vLLM in the same process when it sleeps.
TEST(Trl, GivesItsCacheBackBeforeTheEngineWakesAndWhenItSleeps) {
  EXPECT_EQ(times_emptied(R"({"trainer": "trl"})"), 2);
  EXPECT_EQ(times_emptied(R"({"trainer": "loop"})"), 0);
}

/// The largest tensor, tied embeddings of 896, is gathered under ZeRO-3 alone, and copied for an
/// engine on the same GPU.
TEST(OpenRlhf, CopiesEachTensorForAnEngineBesideIt) {
  const auto handed = [](int stage, const char* place) {
    Json patch{{"framework", {{"zero_stage", stage}}},
               {"workload", {{"rollout", {{"placement", place}}}}}};
    if (std::string_view(place) == "separate") patch["workload"]["rollout"]["sleep_level"] = 0;
    std::int64_t largest = 0;
    const Program program = lower_rlhf(*changed(patch.dump()).rlhf);
    bool generating = false;
    for (const Event& e : program.events) {
      if (e.phase == Phase::generation && e.kind == Event::Kind::begin_phase) generating = true;
      if (e.phase == Phase::generation && e.kind == Event::Kind::end_phase) generating = false;
      if (generating && e.kind == Event::Kind::alloc && e.category == Category::gathered_parameters)
        largest = std::max(largest, e.bytes);
    }
    return largest;
  };
  constexpr std::int64_t kEmbeddings = kVocabulary * 896 * 2;
  EXPECT_EQ(handed(3, "separate"), kEmbeddings);
  EXPECT_EQ(handed(3, "colocated"), 2 * kEmbeddings);
  EXPECT_EQ(handed(2, "colocated"), kEmbeddings);
  EXPECT_EQ(handed(2, "separate"), 0);
}

/// sft_trainer.py has a name for what the model returned until it has returned the next: fp32
/// logits, in each forward pass those of the micro-batch before.
TEST(OpenRlhf, HoldsLogitsUntilTheNextOnesAreThere) {
  const auto supervised = [](const char* trainer, int micro_batches) {
    Job job = changed(std::string(R"({"trainer": ")") + trainer +
                      R"(", "checkpointing": "none", "workload": null})");
    job.plan.workload.micro_batch = 8;
    job.plan.workload.gradient_accumulation = micro_batches;
    const RankModel rank(job.model, job.plan);
    return lower(rank.model(), job.plan, rank.run(), 0);
  };
  const auto held = [](const Program& program) {
    std::int64_t bytes = 0;
    for (const Event& e : program.resident)
      if (e.category == Category::logits_and_loss) bytes += e.bytes * e.count;
    return bytes;
  };
  const Job job = changed(R"({"workload": null})");
  const std::int64_t logits = 8 * job.plan.workload.sequence_length * kVocabulary * 4;
  EXPECT_EQ(held(supervised("openrlhf", 1)), logits);
  EXPECT_EQ(held(supervised("loop", 1)), 0);
  for (const char* algorithm : {"grpo", "ppo", "dpo", "reward"}) {
    Json work{{"algorithm", algorithm}};
    if (algorithm[0] == 'd' || algorithm[0] == 'r')  // of given answers
      work.update({{"prompt_length", nullptr},
                   {"new_tokens", nullptr},
                   {"rollout", nullptr},
                   {"reference", nullptr},
                   {"sequence_length", 1024}});
    const Json patch{{"workload", work}};
    EXPECT_EQ(held(lower_rlhf(*changed(patch.dump()).rlhf)), 0) << algorithm;
  }
  for (const int micro_batches : {1, 2, 4}) {
    const Played played = play(supervised("openrlhf", micro_batches));
    EXPECT_EQ(played.at_end, played.profile.at_start) << micro_batches;
  }
}

/// Liger's kernels leave the loss to the trainer.
TEST(OpenRlhf, HasAllLogitsWhateverLigerPatches) {
  const auto of_loss = [](const char* kernels) {
    const Job job = changed(std::string(R"({"workload": null, "kernels": )") + kernels + "}");
    const RankModel rank(job.model, job.plan);
    const Program program = lower(rank.model(), job.plan, rank.run(), 0);
    std::int64_t largest = 0;
    for (const Event& e : program.events)
      if (e.category == Category::logits_and_loss) largest = std::max(largest, e.bytes);
    return largest;
  };
  EXPECT_EQ(of_loss(R"("liger")"), of_loss(R"("torch")"));
}

TEST(OpenRlhf, LeavesNothingBehind) {
  for (const char* workload :
       {R"({"reference": "copy", "models": {"actor": {"idle": "optimizer"}}})",
        R"({"algorithm": "ppo", "reference": "copy"})",
        R"({"token_budget": 8192, "scoring_tokens": 16384})"}) {
    const Played played =
        play(lower_rlhf(*changed(std::string(R"({"workload": )") + workload + "}").rlhf));
    EXPECT_EQ(played.at_end, played.profile.at_start) << workload;
  }
}

}  // namespace
}  // namespace shardplan::openrlhf_test
