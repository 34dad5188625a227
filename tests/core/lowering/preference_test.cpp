// Preference training under frameworks that divide models: what a reference keeps and gathers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/rlhf/lower.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::preference_test {
namespace {

using ::testing::HasSubstr;

Json dpo(const std::string& name) {
  Json framework{{"name", name}};
  if (name == "fsdp1") framework["use_orig_params"] = true;
  return {{"model", "llama-3.2-1b"},
          {"cluster", "8xH100-80GB"},
          {"framework", framework},
          {"trainer", "trl"},
          {"precision", "bf16-autocast"},
          {"checkpointing", "full"},
          {"workload",
           {{"kind", "rlhf"}, {"algorithm", "dpo"}, {"micro_batch", 1}, {"sequence_length", 512}}}};
}

Job load(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(job, "job.json", {.hardware = &hardware, .directory = ""});
}

Job changed(const std::string& framework, const std::string& patch) {
  Json job = dpo(framework);
  job.merge_patch(Json::parse(patch));
  return load(job);
}

std::int64_t at_start(const Job& job, Category category) {
  return simulate_memory(lower_rlhf(*job.rlhf)).at_start[index_of(category)];
}

std::int64_t peak(const Job& job, Phase phase) {
  return simulate_memory(lower_rlhf(*job.rlhf)).phases[static_cast<std::size_t>(phase)].peak;
}

std::int64_t end(const Job& job, Phase phase) {
  return simulate_memory(lower_rlhf(*job.rlhf)).phases[static_cast<std::size_t>(phase)].end;
}

constexpr double kParameters = 1235814400;  // of Llama 3.2 1B, tied
constexpr double kTied = 128256 * 2048;     // its embeddings
constexpr double kMiBytes = 1 << 20;

TEST(Preference, LeavesNothingBehindUnderAnyFramework) {
  for (const std::string framework : {"ddp", "fsdp1", "fsdp2", "deepspeed"})
    for (const std::string patch :
         {R"({})", R"({"workload": {"algorithm": "kto", "gradient_accumulation": 2}})",
          R"({"workload": {"method": "lora"}})",
          R"({"workload": {"algorithm": "kto", "method": "lora"}})",
          R"({"workload": {"algorithm": "orpo"}})", R"({"workload": {"algorithm": "gkd"}})",
          R"({"workload": {"algorithm": "gkd", "method": "lora"}})",
          R"({"trainer": "hf_trainer", "workload": {"algorithm": "asft"}})",
          R"({"workload": {"algorithm": "gkd_on_policy", "sequence_length": null,
              "prompt_length": 64, "new_tokens": 64, "gradient_accumulation": 2,
              "models": {"reference": {"model": "llama-3.2-3b"}}}})",
          R"({"workload": {"algorithm": "reward"}})",
          R"({"workload": {"algorithm": "grpo", "sequence_length": null, "prompt_length": 64,
              "new_tokens": 64, "reference": "none"}})",
          R"({"workload": {"algorithm": "grpo", "sequence_length": null, "prompt_length": 64,
              "new_tokens": 64, "method": "lora"}})",
          R"({"trainer": "loop", "workload": {"algorithm": "ppo", "sequence_length": null,
              "prompt_length": 64, "new_tokens": 64, "models": {"reference": {"idle": "host"}}}})"}) {
      Json job = dpo(framework);
      job.merge_patch(Json::parse(patch));
      if (framework == "deepspeed") job.erase("precision");
      const Played played = play(lower_rlhf(*load(job).rlhf));
      EXPECT_EQ(played.at_end, played.profile.at_start) << framework << patch;
      for (const std::int64_t least : played.least) EXPECT_GE(least, 0) << framework << patch;
    }
}

/// Of each row of logits autograd keeps seven, as PyTorch 2.11 counts saved tensors of TRL's
/// generalized_jsd_loss (experimental/gkd/gkd_trainer.py): the student's log-softmax, the stack of
/// both, the mixture, two exponentials and one difference.
TEST(Preference, DistillationKeepsSevenRowsOfLogitsForEach) {
  const std::string gkd = R"({"precision": "fp32", "workload": {"algorithm": "gkd"}})";
  const std::string other =
      R"({"precision": "fp32", "loss": "fused_linear", "workload": {"algorithm": "sft"}})";
  const double row = 512.0 * 128256 * 4;
  const auto kept = [&](const std::string& patch) {
    return static_cast<double>(end(changed("ddp", patch), Phase::forward));
  };
  const Job teacher = changed("ddp", R"({"precision": "fp32", "workload": {"algorithm": "gkd",
                  "models": {"reference": {"model": "llama-3.2-3b"}}}})");
  const Job same = changed("ddp", gkd);
  EXPECT_GT(at_start(teacher, Category::parameters), at_start(same, Category::parameters));
  const double rows = kept(gkd) - 4 * kParameters - kept(other);
  EXPECT_NEAR(rows, 7 * row, 0.001 * row);
  // ASFT: two log-softmaxes, and the probabilities of the reference.
  const double anchored = kept(R"({"precision": "fp32", "workload": {"algorithm": "asft"}})") -
                          4 * kParameters - kept(other);
  EXPECT_NEAR(anchored, 3 * row, 0.001 * row);
}

/// The teacher's logits and those of the student are there while the loss is made, and names that
/// ms-swift's chunks give up are kept by TRL.
TEST(Preference, DistillationInChunksHasFewerNames) {
  const auto loss = [](const char* trainer) {
    return peak(changed("ddp", fmt::format(R"({{"trainer": "{}", "workload":
                                               {{"algorithm": "gkd"}}}})",
                                           trainer)),
                Phase::forward);
  };
  EXPECT_LT(loss("hf_trainer"), loss("trl"));
}

TEST(Preference, DistillationTakesAllLogits) {
  EXPECT_THAT(error_text([] {
                changed("ddp", R"({"loss": "fused_linear", "workload": {"algorithm": "gkd"}})");
              }),
              HasSubstr("all logits of both models"));
}

/// add_fused_lm_head takes hidden_states[mask]: of each token of a prompt no row is copied, no
/// label and none of two statistics is kept (TRL 1.16, trainer/utils.py). Other trainers score all.
TEST(Preference, TrlLeavesOutTheTokensOfAPrompt) {
  const auto kept = [](const char* trainer, int prompt) {
    return end(changed("ddp", fmt::format(R"({{"trainer": "{}", "precision": "bf16-pure",
                                               "workload": {{"prompt_length": {}}}}})",
                                          trainer, prompt)),
               Phase::forward);
  };
  EXPECT_EQ(kept("trl", 128) - kept("trl", 384), 2 * 256 * (2048 * 2 + 8 + 4 + 4));
  EXPECT_EQ(kept("openrlhf", 128), kept("openrlhf", 384));
  const Job all = load(dpo("ddp")),
            some = changed("ddp", R"({"workload": {"prompt_length": 256}})");
  EXPECT_GT(peak(all, Phase::forward), peak(some, Phase::forward));
  EXPECT_THAT(error_text([] { changed("ddp", R"({"workload": {"prompt_length": 512}})"); }),
              HasSubstr("leaves no answer"));
}

/// accelerate's prepare_model(evaluation_mode=True): whole on each GPU, in the type it was loaded.
TEST(Preference, DdpKeepsAWholeReferenceOnEachGpu) {
  const double more =
      static_cast<double>(at_start(load(dpo("ddp")), Category::parameters) -
                          at_start(changed("ddp", R"({"workload": {"reference": "precomputed"}})"),
                                   Category::parameters));
  EXPECT_NEAR(more, 4 * kParameters, kMiBytes);
}

TEST(Preference, FsdpDividesTheReference) {
  for (const std::string framework : {"fsdp1", "fsdp2"}) {
    const double more = static_cast<double>(
        at_start(load(dpo(framework)), Category::parameters) -
        at_start(changed(framework, R"({"workload": {"reference": "precomputed"}})"),
                 Category::parameters));
    EXPECT_NEAR(more, 4 * kParameters / 8, kMiBytes) << framework;
  }
}

/// prepare_fsdp calls fully_shard on the root alone: one all-gather into a buffer, which stays
/// while the pass runs, and copies out of it: twice the model in 16 bits. In a loop of one's own
/// blocks are units, and two of them are there at a time.
TEST(Preference, TrlGathersAllOfAnFsdp2ReferenceAtOnce) {
  const auto rise = [](const Job& job) {
    return static_cast<double>(peak(job, Phase::experience) - end(job, Phase::forward));
  };
  const double whole = rise(load(dpo("fsdp2")));
  EXPECT_GT(whole, 2 * 2 * kParameters);
  EXPECT_LT(whole, 2 * 2 * kParameters + 512 * kMiBytes);
  EXPECT_LT(rise(changed("fsdp2", R"({"trainer": "loop", "loss": "fused_linear"})")),
            2 * kParameters);
}

/// PyTorch 2.11's FSDPMemTracker over fully_shard on the root of transformers' own class, in a
/// world of eight, without autograd: 6,818,048 bytes of shards in fp32 (blocks of the allocator add
/// 256 for each of nine norms), and at the peak 27,272,192 each of gathered parameters and of the
/// all-gather's buffer.
TEST(Preference, MeetsWhatPyTorchTracksOfAWholeReference) {
  const Json model{
      {"model_type", "llama"},  {"hidden_size", 512},           {"intermediate_size", 1024},
      {"num_hidden_layers", 4}, {"num_attention_heads", 8},     {"num_key_value_heads", 4},
      {"vocab_size", 4096},     {"tie_word_embeddings", false}, {"max_position_embeddings", 2048}};
  Json job = dpo("fsdp2");
  job["model"] = model;
  const Job with = load(job);
  job["workload"]["reference"] = "precomputed";
  EXPECT_EQ(at_start(with, Category::parameters) - at_start(load(job), Category::parameters),
            6818048 + 9 * 256);
  const std::vector<RlhfPart> parts = rlhf_parts(*with.rlhf);
  const auto part = std::ranges::find_if(parts, [](const RlhfPart& p) { return p.scores; });
  ASSERT_NE(part, parts.end());
  const auto most = simulate_memory(part->program).at_peak;
  EXPECT_EQ(most[index_of(Category::gathered_parameters)], 27272192);
  EXPECT_EQ(most[index_of(Category::communication_buffers)], 27272192);
}

/// The root's flat parameter has no backward pass to wait for and stays: here the tied embeddings
/// and the last norm, in 16 bits. The blocks of SHARD_GRAD_OP stay with it.
TEST(Preference, Fsdp1LeavesTheReferencesRootGathered) {
  const Job usual = load(dpo("fsdp1"));
  EXPECT_NEAR(static_cast<double>(at_start(usual, Category::gathered_parameters)), 2 * kTied,
              kMiBytes);
  const Job kept = changed("fsdp1", R"({"framework": {"name": "fsdp1",
      "sharding_strategy": "shard_grad_op"}})");
  EXPECT_NEAR(static_cast<double>(at_start(kept, Category::gathered_parameters)), 2 * kParameters,
              kMiBytes);
}

/// With adapters TRL asks the model that trains, adapters off: no second copy of anything.
TEST(Preference, LoraNeedsNoCopyUnderTrl) {
  for (const std::string framework : {"ddp", "fsdp1", "fsdp2"}) {
    const Job base = changed(framework, R"({"workload": {"method": "lora"}})");
    EXPECT_EQ(base.rlhf->reference, ReferenceModel::base);
    EXPECT_EQ(base.rlhf->roles.size(), 1U);
    const Job copy = changed(framework, R"({"workload": {"method": "lora", "reference": "copy"}})");
    EXPECT_GT(at_start(copy, Category::parameters), at_start(base, Category::parameters));
    // The pass of the base is there: the experience phase has a peak of its own.
    EXPECT_GT(peak(base, Phase::experience), end(base, Phase::forward)) << framework;
    const Job loop = changed(framework, R"({"trainer": "loop", "workload": {"method": "lora"}})");
    EXPECT_EQ(loop.rlhf->reference, ReferenceModel::copy);
  }
}

/// TRL scores tokens in tiles of the head's product; ORPO's trainer makes all logits, of both
/// sequences of a pair.
TEST(Preference, OnlySomeAlgorithmsMakeAllLogits) {
  const auto logits = [](const std::string& algorithm) {
    const Job job = changed("fsdp2", R"({"workload": {"algorithm": ")" + algorithm + "\"}}");
    std::int64_t most = 0;
    for (const Event& e : lower_rlhf(*job.rlhf).blocks)
      if (e.category == Category::logits_and_loss) most = std::max(most, e.bytes);
    return most;
  };
  constexpr std::int64_t kAll = std::int64_t{2} * 512 * 128256 * 4;
  EXPECT_LT(logits("dpo"), kAll);
  EXPECT_LT(logits("kto"), kAll);
  EXPECT_EQ(logits("orpo"), kAll);
  EXPECT_EQ(logits("cpo"), kAll);
}

/// Trainers of LLaMA-Factory and ms-swift make all logits in fp32, keep their log-softmax for the
/// backward pass, and have a name for the logits while the reference scores.
TEST(Preference, TrainersOnTransformersHoldAllLogits) {
  constexpr std::int64_t kAll = std::int64_t{2} * 512 * 128256 * 4;
  const Job job = changed("fsdp2", R"({"trainer": "hf_trainer"})");
  const Job loop = changed("fsdp2", R"({"trainer": "loop"})");
  const auto rise = [](const Job& j) {
    return peak(j, Phase::experience) - end(j, Phase::forward);
  };
  EXPECT_GE(end(job, Phase::forward), kAll);
  // Beside that the whole reference, in 16 bits twice, for two blocks and the root of it.
  EXPECT_GE(rise(job), rise(loop) + kAll);
}

/// Each micro-batch has its own scores: time was counted for one of them.
TEST(Preference, ScoresEachMicroBatch) {
  const auto scoring = [](const std::string& patch) {
    double seconds = 0;
    const Estimate e = estimate_rlhf(*changed("fsdp2", patch).rlhf, load_calibration());
    for (const TimeEstimate::PhaseTime& phase : e.time.phases)
      if (phase.phase == Phase::experience) seconds += phase.seconds;
    return seconds;
  };
  const double one = scoring(R"({})");
  EXPECT_GT(one, 0);
  EXPECT_NEAR(scoring(R"({"workload": {"gradient_accumulation": 3}})"), 3 * one, 1e-9);
  // KTO's other completions: once by the model that trains, once more by the reference.
  EXPECT_GT(scoring(R"({"workload": {"algorithm": "kto"}})"), one);
}

TEST(Preference, RefusesDividedLayers) {
  EXPECT_THAT(error_text([] { changed("fsdp2", R"({"parallel": {"tensor": 2}})"); }),
              HasSubstr("rlhf with layers divided over GPUs"));
}

/// Chosen and rejected answers have their images, and a reference its own tower.
TEST(Images, AreReadByPreferenceTrainingAndNotWhereSomethingIsGenerated) {
  const Json patch = Json::parse(R"({"model": "paligemma-3b-pt-224",
                                     "workload": {"frozen": "tower", "sequence_length": 1024}})");
  Json job = dpo("ddp");
  job.merge_patch(patch);
  const Job pairs = load(job);
  ASSERT_EQ(pairs.rlhf->roles.size(), 2U);
  for (const Role& role : pairs.rlhf->roles) EXPECT_GT(role.model.facts.image.tokens, 0);
  EXPECT_EQ(pairs.rlhf->roles.front().plan.workload.images.frozen, FrozenParts::tower);
  const MemoryProfile profile = simulate_memory(lower_rlhf(*pairs.rlhf));
  EXPECT_GT(profile.peak, 0);
  job["workload"]["images"] = 2;
  EXPECT_GT(simulate_memory(lower_rlhf(*load(job).rlhf)).peak, profile.peak);
  job["workload"] = Json::parse(R"({"kind": "rlhf", "algorithm": "grpo", "micro_batch": 1,
                                    "prompt_length": 300, "new_tokens": 16})");
  EXPECT_THAT(error_text([&] { load(job); }), HasSubstr("reads images"));
}

}  // namespace
}  // namespace shardplan::preference_test
