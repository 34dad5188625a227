// Rollout engines beside the trainer: what they hold, by the engine's own arithmetic, and what they
// refuse.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/rlhf/lower.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::rollout_test {
namespace {

using ::testing::HasSubstr;

Json grpo() {
  return parse_json(R"({"model": "llama-3.1-8b", "cluster": "8xH100-80GB", "framework": "fsdp2",
    "trainer": "trl", "precision": "bf16-autocast", "checkpointing": "full",
    "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 4, "prompt_length": 512,
                 "new_tokens": 512, "reference": "none",
                 "rollout": {"gpu_memory_utilization": 0.5, "max_num_batched_tokens": 4096,
                             "max_num_seqs": 256}}})",
                    "grpo");
}

Job changed(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = grpo();
  json.merge_patch(parse_json(patch, "patch"));
  return load_job(json, "job.json", {.hardware = &hardware, .directory = ""});
}

EngineMemory memory_of(const Job& job) {
  return engine_memory(*job.rlhf->rollout, *job.rlhf->generator, job.rlhf->generation);
}

/// TRL 1.16, generation/vllm_generation.py; its server is started by another command, without.
TEST(Rollout, HasTheSizesThatItsTrainerAsksFor) {
  const char* open = R"({"workload": {"generation_batch": 24,
      "rollout": {"max_num_seqs": null, "max_num_batched_tokens": null)";
  const auto engine = [&](const std::string& more) {
    return *changed(std::string(open) + more + "}}}").rlhf->rollout;
  };
  EXPECT_EQ(engine(R"(, "tensor_parallel": 2)").sequences, 48);
  EXPECT_EQ(engine("").batched_tokens, 4096);
  EXPECT_EQ(engine(R"(, "placement": "separate")").sequences, 1024);
  EXPECT_EQ(engine(R"(, "placement": "separate")").batched_tokens, 16384);
}

std::string error(const std::string& rollout) {
  return error_text([&] { changed(R"({"workload": {"rollout": )" + rollout + "}}"); });
}

std::int64_t peak(const Job& job, Phase phase) {
  return simulate_memory(lower_rlhf(*job.rlhf)).of(phase).peak;
}

/// Llama 3.1 turns 128 numbers of each head, by a table of its 131,072 positions.
constexpr std::int64_t kPositions = 131072 * 128 * 2;

/// Keys and values of Llama 3.1 8B: 2 × 16 tokens × 8 heads × 128 × 2 bytes, of 32 layers; as many
/// blocks as the share of the GPU leaves beside weights and activations.
TEST(Rollout, CountsBlocksAsTheEngineDoes) {
  const Job job = changed("{}");
  const EngineMemory m = memory_of(job);
  const auto total = static_cast<double>(job.plan.cluster.gpu.usable.count());
  EXPECT_EQ(m.budget - m.outside,
            static_cast<std::int64_t>(std::ceil(total * 0.5)) - kVllm.library_bytes);
  EXPECT_EQ(m.block_bytes, 2 * 16 * 8 * 128 * 2 * 32);
  EXPECT_EQ(m.blocks, (m.budget - m.weights - m.activations) / m.block_bytes);
  EXPECT_EQ(m.cache, m.blocks * m.block_bytes);
  EXPECT_EQ(m.blocks_needed, 1024 / 16);
  EXPECT_NEAR(static_cast<double>(m.weights), 2.0 * 8030261248 + kPositions, 1 << 20);
  EXPECT_GT(m.activations, 0);
}

TEST(Rollout, TensorParallelRanksDivideWeightsAndHeads) {
  const EngineMemory one = memory_of(changed("{}"));
  const EngineMemory four =
      memory_of(changed(R"({"workload": {"rollout": {"tensor_parallel": 4}}})"));
  EXPECT_NEAR(static_cast<double>(four.weights - kPositions),
              static_cast<double>(one.weights - kPositions) / 4, 1 << 20);
  EXPECT_EQ(four.block_bytes, one.block_bytes / 4);
  // Eight heads of keys over sixteen ranks: each has one.
  const EngineMemory more = memory_of(
      changed(R"({"workload": {"rollout": {"tensor_parallel": 16, "placement": "separate"}}})"));
  EXPECT_EQ(more.block_bytes, one.block_bytes / 8);
}

TEST(Rollout, TakesItsShareOfTheTrainersGpus) {
  const Job separate = changed(R"({"workload": {"rollout": {"placement": "separate"}}})");
  const Job awake = changed("{}");
  const EngineMemory m = memory_of(awake);
  const std::int64_t all = m.weights + m.activations + m.cache;
  for (const Phase phase : {Phase::generation, Phase::actor_training})
    EXPECT_EQ(peak(awake, phase) - peak(separate, phase), all);
}

/// 51 sizes to 512 tokens of passes cut at attention, 35 to 256 sequences of whole ones.
TEST(Rollout, GraphsComeOnTopOfItsShare) {
  const Job job = changed("{}");
  const EngineMemory with = memory_of(job);
  const EngineMemory eager =
      memory_of(changed(R"({"workload": {"rollout": {"cuda_graphs": false}}})"));
  EXPECT_EQ(with.outside - eager.outside,
            32 * (51 * kVllm.graphs.cut_bytes + 35 * kVllm.graphs.whole_bytes) +
                2 * job.plan.cluster.gpu.abilities.blas_workspace_bytes + 80 * 4 * 256 * 4096);
  EXPECT_EQ(with.blocks, eager.blocks);
}

/// Of each of 256 sequences a count of 32 bits and a bit for each word, and 40 KiB.
TEST(Rollout, CountsOfWordsAreInTheShareOrBesideIt) {
  const EngineMemory later = memory_of(changed("{}"));
  const EngineMemory earlier =
      memory_of(changed(R"({"workload": {"rollout": {"engine": "vllm-0.25"}}})"));
  const std::int64_t counts = 256 * (128256 / 8 * 33 + (40 << 10));
  EXPECT_EQ(earlier.outside - later.outside, counts);
  EXPECT_EQ(earlier.activations, later.activations);
  EXPECT_NEAR(static_cast<double>(earlier.cache - later.cache), static_cast<double>(counts),
              static_cast<double>(later.block_bytes));
}

/// What a category has of the GPU, awake or asleep.
std::int64_t beside_tensors(const Job& job, Category category) {
  const Estimate e = estimate_rlhf(*job.rlhf, load_calibration());
  return e.breakdown[static_cast<std::size_t>(category)].at_peak;
}

/// An engine's process has a CUDA context, and communicators where it is over several GPUs. TRL's
/// runs inside the trainer's process; OpenRLHF's models are in processes of their own too.
TEST(Rollout, HasAProcessOfItsOwn) {
  const auto of = [](const std::string& trainer, const std::string& rollout, Category category) {
    return beside_tensors(
        changed(R"({"trainer": ")" + trainer + R"(", "workload": {"rollout": )" + rollout + "}}"),
        category);
  };
  const std::string apart = R"({"placement": "separate"})";
  for (const Category c : {Category::cuda_context, Category::nccl})
    EXPECT_EQ(of("trl", R"({"sleep_level": 2})", c), of("trl", apart, c));
  const std::int64_t context = of("verl", apart, Category::cuda_context);
  const std::int64_t both = of("verl", R"({"sleep_level": 2})", Category::cuda_context);
  EXPECT_NEAR(static_cast<double>(both), 2.0 * static_cast<double>(context), 64 << 20);
  EXPECT_EQ(of("verl", "{}", Category::nccl), of("verl", apart, Category::nccl));
  EXPECT_GT(of("verl", R"({"tensor_parallel": 4})", Category::nccl),
            of("verl", apart, Category::nccl));
}

TEST(Rollout, AsleepItMakesRoomForTraining) {
  const Job separate = changed(R"({"workload": {"rollout": {"placement": "separate"}}})");
  const Job asleep = changed(R"({"workload": {"rollout": {"sleep_level": 2}}})");
  const Job on_host = changed(R"({"workload": {"rollout": {"sleep_level": 1}}})");
  const EngineMemory m = memory_of(asleep);
  EXPECT_LT(m.asleep, m.activations);
  EXPECT_EQ(peak(asleep, Phase::actor_training) - peak(separate, Phase::actor_training), m.asleep);
  EXPECT_GE(peak(asleep, Phase::generation), m.weights + m.cache + m.asleep);
  EXPECT_EQ(lower_rlhf(*on_host.rlhf).host.pinned - lower_rlhf(*asleep.rlhf).host.pinned,
            m.weights);
}

/// The embeddings are the largest tensor, in fp32 as FSDP has them.
TEST(Rollout, HandsWeightsOverTensorByTensor) {
  const Job job = changed(R"({"workload": {"rollout": {"placement": "separate"}}})");
  const MemoryProfile profile = simulate_memory(lower_rlhf(*job.rlhf));
  std::int64_t states = 0;
  for (const std::int64_t bytes : profile.at_start) states += bytes;
  EXPECT_EQ(peak(job, Phase::generation) - states, std::int64_t{128256} * 4096 * 4);
}

/// To other GPUs one message is filled while another is sent.
TEST(Rollout, HasTwoBuffersForGpusOfItsOwn) {
  const auto at_peak = [](const char* bucket) {
    return peak(changed(std::string(R"({"workload": {"rollout": {"placement": "separate",
                                        "weight_bucket": )") +
                        bucket + "}}}"),
                Phase::generation);
  };
  EXPECT_EQ(at_peak("1073741824") - at_peak("0"), std::int64_t{2} << 30);
}

TEST(Rollout, LeavesNothingBehind) {
  for (const std::string patch :
       {R"({})", R"({"workload": {"rollout": {"sleep_level": 1}}})",
        R"({"workload": {"rollout": {"sleep_level": 2}, "method": "lora"}})",
        R"({"framework": "ddp", "model": "llama-3.2-1b"})",
        R"({"framework": "deepspeed", "precision": null, "workload": {"method": "lora"}})"}) {
    const Played played = play(lower_rlhf(*changed(patch).rlhf));
    EXPECT_EQ(played.at_end, played.profile.at_start) << patch;
  }
}

constexpr const char* kJudged = R"({"workload": {"rollout": {"sleep_level": 2}, "models": {"reward":
  {"model": "llama-3.2-1b", "engine": {"gpu_memory_utilization": 0.8, "sleep_level": 1,
   "max_model_length": 4096}}}}})";

/// A reward model in an engine of its own wakes once the first engine sleeps.
TEST(Rollout, WakesAJudgeAfterTheAnswers) {
  const Job alone = changed(R"({"workload": {"rollout": {"sleep_level": 2}}})");
  const Job judged = changed(kJudged);
  ASSERT_TRUE(judged.rlhf->judge);
  EXPECT_EQ(judged.rlhf->roles.size(), alone.rlhf->roles.size());
  const Judge& judge = *judged.rlhf->judge;
  const EngineMemory m = engine_memory(judge.engine, judge.model, judge.plan);
  EXPECT_EQ(judge.engine.model_length, 4096);
  // All of Llama 3.2 1B in 16 bits, whose heads are 64 wide.
  EXPECT_EQ(m.weights, std::int64_t{1235814400} * 2 + kPositions / 2);
  // Asleep it keeps its graphs, and its weights on the host.
  EXPECT_EQ(peak(judged, Phase::actor_training) - peak(alone, Phase::actor_training), m.asleep);
  EXPECT_EQ(lower_rlhf(*judged.rlhf).host.pinned - lower_rlhf(*alone.rlhf).host.pinned, m.weights);
  // 0.8 of a GPU is more than the 0.5 of the engine that generates.
  EXPECT_GE(peak(judged, Phase::generation), m.weights + m.cache + m.activations);
  EXPECT_GT(peak(judged, Phase::generation), peak(alone, Phase::generation));
  const Played played = play(lower_rlhf(*judged.rlhf));
  EXPECT_EQ(played.at_end, played.profile.at_start);
}

TEST(Rollout, RefusesAJudgeByItsKeys) {
  const auto judge_error = [](const std::string& engine) {
    return error_text(
        [&] { changed(R"({"workload": {"models": {"reward": {"engine": )" + engine + "}}}}"); });
  };
  EXPECT_THAT(judge_error(R"({"gpu_memory_utilization": 0.1})"),
              HasSubstr("workload.models.reward.engine.gpu_memory_utilization"));
  EXPECT_THAT(judge_error(R"({"tensor_parallel": 3})"), HasSubstr("engine.tensor_parallel"));
  EXPECT_THAT(judge_error(R"({"sleep": 1})"), HasSubstr("sleep_level"));
  EXPECT_THAT(error_text([] {
                changed(R"({"framework": "ddp", "workload": {"rollout": null,
                            "models": {"reward": {"engine": {}}}}})");
              }),
              HasSubstr("workload.rollout beside it"));
}

/// The engine's degree is named, never the trainer's, with the nearest that would do.
TEST(Rollout, NamesItsOwnDegree) {
  const auto degree_error = [](const char* model, int degree, int gpus) {
    return error_text([&] {
      changed(fmt::format(R"({{"model": "{}", "cluster": "{}xH100-80GB",
                              "workload": {{"rollout": {{"tensor_parallel": {}}}}}}})",
                          model, gpus, degree));
    });
  };
  EXPECT_THAT(degree_error("llama-3.1-8b", 5, 8),
              HasSubstr("workload.rollout.tensor_parallel: 5 does not divide the 32 heads; "
                        "expected 4"));
  EXPECT_THAT(degree_error("llama-3.1-8b", 16, 8), HasSubstr("16 does not divide the 8 GPUs"));
  EXPECT_THAT(degree_error("qwen2.5-1.5b", 3, 6),
              HasSubstr("workload.rollout.tensor_parallel: 3 neither divides the 2 key-value "
                        "heads nor is a multiple of them; expected 2"));
  EXPECT_THAT(degree_error("qwen2.5-1.5b", 6, 6),
              HasSubstr("workload.rollout.tensor_parallel: 6 ranks cannot divide a width of 256 "
                        "evenly; expected 2"));
}

/// An engine that takes most of a GPU and sleeps: one allocator would keep what training has cut
/// up. Beside it are the segments that the trainer's states share with nothing else.
TEST(Rollout, ReservesNoMoreThanTheLargerOfTwoTurns) {
  const Job job =
      changed(R"({"workload": {"rollout": {"sleep_level": 2, "gpu_memory_utilization": 0.7}}})");
  const Estimate e = estimate_rlhf(*job.rlhf, load_calibration());
  EXPECT_GE(e.reserved.point, peak(job, Phase::generation));
  // What the trainer gathered to hand over is cached when the engine asks for its cache.
  constexpr std::int64_t kHanded = std::int64_t{128256} * 4096 * 4;
  EXPECT_LT(e.reserved.point, peak(job, Phase::generation) + kHanded + (std::int64_t{1} << 28));
  EXPECT_EQ(e.verdict.gpu.fit, Fit::fits);
  // Kept awake it leaves no room for training: what is live at once is more than there is.
  const Job awake = changed(R"({"workload": {"rollout": {"gpu_memory_utilization": 0.8}}})");
  EXPECT_EQ(estimate_rlhf(*awake.rlhf, load_calibration()).verdict.gpu.fit, Fit::does_not_fit);
}

TEST(Rollout, SaysWhatItHolds) {
  const Job job = changed(R"({"workload": {"rollout": {"sleep_level": 1}}})");
  ASSERT_FALSE(job.diagnostics.empty());
  const std::string text = to_string(job.diagnostics.back());
  EXPECT_THAT(text, HasSubstr("vLLM 0.27 takes 40."));
  EXPECT_THAT(text, HasSubstr("blocks of 16 tokens"));
  EXPECT_THAT(text, HasSubstr("asleep it keeps up to"));
}

double generation_seconds(const std::string& workload, const std::string& trainer = "trl") {
  const Job job = changed(R"({"trainer": ")" + trainer + R"(", "workload": )" + workload + "}");
  const TimeEstimate time = estimate_rlhf(*job.rlhf, load_calibration()).time;
  for (const TimeEstimate::PhaseTime& phase : time.phases)
    if (phase.phase == Phase::generation) return phase.seconds;
  return 0;
}

TEST(Rollout, TakesAPassForEachTokenOfAllThatFitTogether) {
  const double few = generation_seconds(R"({"generation_batch": 16})");
  const double twice_as_long =
      generation_seconds(R"({"generation_batch": 16, "new_tokens": 1024})");
  EXPECT_GT(few, 512 * 5e-3);  // 16 GB of weights at 3.35 TB/s
  EXPECT_GT(twice_as_long, 1.95 * few);
  EXPECT_LT(twice_as_long, 2.2 * few);
  // Eight times the sequences read the weights once; beyond what fits there is another round.
  EXPECT_LT(generation_seconds(R"({"generation_batch": 128})", "loop"), 3 * few);
  const double in_turns =
      generation_seconds(R"({"generation_batch": 128, "rollout": {"max_num_seqs": 16}})");
  EXPECT_GT(in_turns, 7.5 * few);
}

/// Of sixteen prompts of 2,048 tokens an engine computes two whole, and 16 tokens of the others: at
/// least the time that the peak of an H100 takes for the rest.
TEST(Rollout, ComputesAPromptOnceForAllItsAnswers) {
  const auto seconds = [](const std::string& rollout) {
    return generation_seconds(R"({"generation_batch": 16, "prompt_length": 2048, "rollout": )" +
                              rollout + "}");
  };
  const double apart = seconds(R"({"completions": 1})"),
               together = seconds(R"({"completions": 8})");
  EXPECT_GT(apart - together, 14 * (2048 - 16) * 2 * 6.9e9 / 989e12);
  EXPECT_LT(together, apart);
  EXPECT_DOUBLE_EQ(seconds(R"({"completions": 8, "prefix_caching": false})"), apart);
  // TRL's num_generations, where nothing is said.
  EXPECT_DOUBLE_EQ(generation_seconds(R"({"generation_batch": 16, "prompt_length": 2048})"),
                   together);
}

TEST(Rollout, DoesNotBorrowTheErrorOfTrainingSteps) {
  const TimeEstimate time = estimate_rlhf(*changed("{}").rlhf, load_calibration()).time;
  EXPECT_GT(time.step_seconds, 0);
  EXPECT_FALSE(time.error);
}

/// 2 × 16 GB over PCIe, and weights that all ranks gather.
TEST(Rollout, TakesTimeToWakeAndToBeGivenWeights) {
  const double awake = generation_seconds(R"({"rollout": {"sleep_level": 0}})");
  const double wakes = generation_seconds(R"({"rollout": {"sleep_level": 1}})");
  EXPECT_GT(wakes - awake, 2 * 16.06e9 / 64e9);
  EXPECT_LT(wakes - awake, 2 * 16.06e9 / 16e9);
  // Both ways the driver maps what sleeps: half a GPU at 475 to 520 GB/s.
  const double drops = generation_seconds(R"({"rollout": {"sleep_level": 2}})");
  EXPECT_GT(drops - awake, 2 * 0.5 * 80e9 / 520e9);
  EXPECT_LT(drops - awake, 2 * 0.6 * 85e9 / 475e9);
}

/// TRL's own Python, and the loader, which it gives each of 291 tensors alone.
TEST(Rollout, TakesTheHostsTimeAroundTheAnswers) {
  const char* short_ones = R"({"generation_batch": 1, "new_tokens": 1})";
  const double around =
      generation_seconds(short_ones, "trl") - generation_seconds(short_ones, "loop");
  EXPECT_GT(around, 291 * 0.3e-3);
  EXPECT_LT(around, 291 * 0.35e-3 + 10e-3);
}

TEST(Rollout, OnGpusOfItsOwnHasNoTime) {
  const Job job = changed(R"({"workload": {"rollout": {"placement": "separate"}}})");
  const TimeEstimate time = estimate_rlhf(*job.rlhf, load_calibration()).time;
  EXPECT_EQ(time.step_seconds, 0);
  EXPECT_THAT(std::string(time.unknown_because), HasSubstr("how many GPUs"));
}

TEST(Rollout, RefusesGpusThatItCannotHave) {
  EXPECT_THAT(error(R"({"placement": "separate", "gpus": 0})"), HasSubstr("1 to"));
  EXPECT_THAT(error(R"({"placement": "separate", "gpus": 6, "tensor_parallel": 4})"),
              AllOf(HasSubstr("4 does not divide the 6 GPUs"), HasSubstr("expected 2")));
  EXPECT_THAT(error(R"({"gpus": 8})"),
              AllOf(HasSubstr("rollout.gpus"), HasSubstr("placement separate")));
  EXPECT_THAT(error(R"({"steps_off_policy": 1})"),
              AllOf(HasSubstr("rollout.steps_off_policy"), HasSubstr("0, or placement separate")));
  EXPECT_EQ(error(R"({"placement": "separate", "gpus": 8, "tensor_parallel": 4})"), "no error");
}

TEST(Rollout, RefusesWhatCannotStart) {
  const std::string small = error(R"({"gpu_memory_utilization": 0.19})");
  EXPECT_THAT(small, HasSubstr("workload.rollout.gpu_memory_utilization"));
  EXPECT_THAT(small, HasSubstr("one sequence of 1024 tokens wants 64"));
  const std::size_t at = small.find("at least 0.");
  ASSERT_NE(at, std::string::npos);
  const std::string least = small.substr(at + 9, 4);
  EXPECT_EQ(error(R"({"gpu_memory_utilization": )" + least + "}"), "no error");
  EXPECT_THAT(error(R"({"tensor_parallel": 3})"), HasSubstr("does not divide the 32 heads"));
  EXPECT_THAT(error(R"({"tensor_parallel": 16})"), HasSubstr("the 8 GPUs that it shares"));
  EXPECT_THAT(error(R"({"sleep_level": 3})"), HasSubstr("sleep_level"));
  EXPECT_THAT(error(R"({"engine": "vlm"})"), HasSubstr("vllm"));
  EXPECT_THAT(error(R"({"max_model_length": 100})"), HasSubstr("at least 1024"));
  EXPECT_THAT(error(R"({"gpu_memory_utilisation": 0.5})"), HasSubstr("gpu_memory_utilization"));
}

/// An engine holds the whole network; what is trained reads the images of the prompts.
TEST(Rollout, OfANetworkThatReadsImagesHoldsItsTower) {
  const auto job = [](const std::string& work) {
    return changed(R"({"model": "qwen2.5-vl-7b", "workload": {"prompt_length": 2048, "frozen":
                       "tower", "rollout": {"gpu_memory_utilization": 0.5}, )" +
                   work + "}}");
  };
  const Job images = job(R"("images": 1)");
  std::int64_t elements = 0;
  for (const Parameter& p : images.rlhf->generator->parameters)
    if (p.name.find("visual") != std::string::npos) elements += p.numel;
  EXPECT_GT(elements, 0);
  EXPECT_EQ(memory_of(images).weights, memory_of(job(R"("images": 0)")).weights);
  EXPECT_GT(images.rlhf->roles.front().model.facts.image.patches, 0);
  EXPECT_THAT(images.assumed, ::testing::Contains(HasSubstr("rollout engine's tower")));
  EXPECT_THAT(error_text([&] { job(R"("images": 1, "image_tokens": 2100)"); }),
              HasSubstr("prompt_length"));
  EXPECT_GT(peak(images, Phase::actor_training),
            peak(job(R"("images": 0)"), Phase::actor_training));
}

/// Delta nets run by an engine's own kernels; what their states take there is said, not counted.
TEST(Rollout, OfDeltaNetsSaysThatStatesAreNotCounted) {
  const std::string model = R"({"model": "qwen3.5-27b", "workload": {"images": 0)";
  const Job job = changed(model + R"(, "rollout": {"gpu_memory_utilization": 0.75}}})");
  EXPECT_THAT(job.assumed, ::testing::Contains(HasSubstr("their states take a part")));
  EXPECT_GT(memory_of(job).blocks, 0);
  EXPECT_THAT(error_text([&] { changed(model + R"(, "rollout": null}})"); }),
              HasSubstr("training alone"));
}

}  // namespace
}  // namespace shardplan::rollout_test
