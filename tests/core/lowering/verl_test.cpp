// verl's workers: its losses over logits as they are, budgets of tokens, models that are on the
// host in part, and how weights go to the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/rlhf/idle.h"
#include "lowering/rlhf/lower.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::verl_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kVocabulary = 151936, kHidden = 896;  // Qwen 2.5 0.5B, a tied head

Job changed(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "qwen2.5-0.5b", "cluster": "8xH100-80GB",
    "framework": {"name": "fsdp1", "reduce_dtype": "fp32"}, "trainer": "verl",
    "precision": "bf16-autocast", "checkpointing": "full",
    "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 8, "prompt_length": 512,
                 "new_tokens": 512, "reference": "none",
                 "rollout": {"gpu_memory_utilization": 0.4, "placement": "separate"}}})",
                         "verl");
  json.merge_patch(parse_json(patch, "patch"));
  return load_job(json, "job.json", {.hardware = &hardware, .directory = ""});
}

std::int64_t peak(const Job& job, Phase phase) {
  return simulate_memory(lower_rlhf(*job.rlhf)).of(phase).peak;
}
std::int64_t training(const std::string& workload) {
  return peak(changed(R"({"workload": )" + workload + "}"), Phase::actor_training);
}
std::int64_t scoring(const std::string& workload) {
  return peak(changed(R"({"workload": )" + workload + "}"), Phase::experience);
}

/// flash-attn's cross-entropy keeps the logits in 16 bits and writes their gradient over them: of
/// one more sample 2 bytes a logit. A loop makes fp32 logits and what log_softmax keeps.
TEST(Verl, TakesLogProbabilitiesOverLogitsInSixteenBits) {
  const std::int64_t more = training(R"({"micro_batch": 16})") - training(R"({"micro_batch": 8})");
  const std::int64_t logits = std::int64_t{8} * 1024 * kVocabulary;
  EXPECT_GE(more, 2 * logits);
  EXPECT_LT(more, 3 * logits);
  const Job loop = changed(R"({"trainer": "loop"})");
  EXPECT_GT(peak(loop, Phase::actor_training), training("{}") + 4 * logits);
}

/// Ranks that share a sequence score as many tokens of it as they train on.
TEST(Verl, DividesTheSequencesThatItScores) {
  const auto of_eight = [](const std::string& parallel) {
    const auto scores = [&](const char* batch) {
      return peak(changed(R"({"parallel": )" + parallel + R"(, "workload": {"scoring_batch": )" +
                          batch + "}}"),
                  Phase::experience);
    };
    return static_cast<double>(scores("16") - scores("8"));
  };
  EXPECT_NEAR(2 * of_eight(R"({"sequence": 2})"), of_eight("{}"), 0.01 * of_eight("{}"));
}

/// The entropy reads the logits after the loss: each makes a gradient of its own. By PyTorch's
/// operations probabilities in fp32 are kept too.
TEST(Verl, KeepsLogitsWholeForTheEntropy) {
  const std::int64_t logits = std::int64_t{8} * 1024 * kVocabulary;
  const std::int64_t none = training("{}");
  const std::int64_t compiled = training(R"({"entropy": "compiled"})");
  const std::int64_t eager = training(R"({"entropy": "eager"})");
  EXPECT_GT(compiled - none, 3 * logits);
  EXPECT_LE(compiled - none, 4 * logits);
  EXPECT_GE(eager - compiled, 4 * logits);
}

/// Scores come with the entropy where the loss has none: only they make probabilities then.
TEST(Verl, ScoresWithAnEntropyOfTheirOwn) {
  const std::int64_t logits = std::int64_t{8} * 1024 * kVocabulary;
  const std::string own = R"({"scoring_entropy": "eager"})";
  EXPECT_GT(scoring(own) - scoring("{}"), 7 * logits);
  EXPECT_EQ(training(own), training("{}"));
}

/// Chunks of 512 tokens, however many there are.
TEST(Verl, ItsFusedHeadNeverHasAllLogits) {
  const auto fused = [](const char* batch) {
    return peak(changed(std::string(R"({"loss": "fused_linear", "workload": {"micro_batch": )") +
                        batch + "}}"),
                Phase::actor_training);
  };
  EXPECT_LT(fused("16") - fused("8"), std::int64_t{8} * 1024 * kVocabulary / 2);
  EXPECT_LT(fused("16"), training(R"({"micro_batch": 16})"));
}

TEST(Verl, TakesBudgetsOfTokens) {
  // 8 samples of 1,024 tokens, and what a budget of 8,704 has beyond them in longer rows.
  const Job job = changed(R"({"workload": {"token_budget": 8704}})");
  const Workload& w = job.rlhf->roles.front().plan.workload;
  EXPECT_EQ(w.micro_batch, 8);
  EXPECT_EQ(w.sequence_length, 1088);
  EXPECT_EQ(training(R"({"token_budget": 8192})"), training(R"({"micro_batch": 8})"));
  EXPECT_EQ(scoring(R"({"scoring_tokens": 16384})"), scoring(R"({"scoring_batch": 16})"));
  EXPECT_GT(scoring(R"({"scoring_batch": 16})"), scoring("{}"));
  EXPECT_THAT(error_text([] { training(R"({"token_budget": 1000})"); }),
              ::testing::AllOf(HasSubstr("hold no sequence of 1024"), HasSubstr("at least 1024")));
}

/// Ulysses: two GPUs have halves of the tokens, and a budget of as many on each.
TEST(Verl, DividesSequencesOverItsOwnRanks) {
  const Job two = changed(R"({"parallel": {"sequence": 2}, "workload": {"token_budget": 8192}})");
  EXPECT_EQ(two.rlhf->roles.front().plan.workload.micro_batch, 16);
  const std::int64_t one = training(R"({"token_budget": 8192})");
  EXPECT_NEAR(static_cast<double>(peak(two, Phase::actor_training)), static_cast<double>(one),
              0.1 * static_cast<double>(one));
  EXPECT_THAT(error_text([] { changed(R"({"trainer": "loop", "parallel": {"sequence": 2}})"); }),
              HasSubstr("no degree of this kind"));
}

/// What is away comes back for a turn: the optimizer's states for training alone.
TEST(Verl, BringsBackWhatATurnNeeds) {
  const auto with = [](const char* idle) {
    return changed(std::string(R"({"workload": {"models": {"actor": {"idle": ")") + idle +
                   "\"}}}}");
  };
  const Job here = with("gpu"), away = with("host"), part = with("optimizer");
  std::int64_t states = 0, optimizer = 0;
  for (const RlhfPart& p : rlhf_parts(*here.rlhf))
    for (const Event& e : p.program.resident)
      if (p.phase == Phase::actor_training) {
        const std::int64_t bytes = e.bytes * e.count;
        if (e.category == Category::optimizer_states) optimizer += bytes;
        if (e.category == Category::parameters) states += bytes;
      }
  EXPECT_GT(optimizer, states);
  const auto near = [](std::int64_t a, std::int64_t b) {  // sums are rounded together, not each
    EXPECT_NEAR(static_cast<double>(a), static_cast<double>(b), 1e5);
  };
  near(peak(here, Phase::actor_training), peak(away, Phase::actor_training));
  near(peak(here, Phase::experience) - peak(away, Phase::experience), optimizer);
  near(peak(here, Phase::experience) - peak(part, Phase::experience), optimizer);
  EXPECT_EQ(lower_rlhf(*away.rlhf).host.pinned - lower_rlhf(*here.rlhf).host.pinned,
            optimizer + states);
  for (const char* idle : {"gpu", "parameters", "optimizer", "host"}) {
    const Played played = play(lower_rlhf(*with(idle).rlhf));
    EXPECT_EQ(played.at_end, played.profile.at_start) << idle;
  }
}

/// AdamW makes its states in the first step, unless they come from the host: then they are there
/// already, and a step that made them too would have them twice.
TEST(Verl, StatesFromTheHostAreMadeOnce) {
  const auto made = [](const char* idle) {
    std::int64_t bytes = 0;
    const Job job =
        changed(std::string(R"({"workload": {"models": {"actor": {"idle": ")") + idle + "\"}}}}");
    for (const EventsOfOneStep& once : lower_rlhf(*job.rlhf).once)
      for (const Event& e : once.events)
        if (once.makes_residents && e.kind == Event::Kind::alloc &&
            e.category == Category::optimizer_states)
          bytes += e.bytes * e.count;
    return bytes;
  };
  EXPECT_GT(made("gpu"), 0);
  EXPECT_EQ(made("parameters"), made("gpu"));
  EXPECT_EQ(made("optimizer"), 0);
  EXPECT_EQ(made("host"), 0);
}

/// A state_dict of FSDP1 copies the shards; a bucket and the largest tensor, in fp32, come on top.
TEST(Verl, CollectsWeightsForTheEngine) {
  constexpr std::int64_t kBucket = std::int64_t{1} << 30;
  const Job plain = changed(R"({"workload": {"rollout": {"weight_bucket": 0}}})");
  const Job bucket = changed(R"({"workload": {"rollout": {"weight_bucket": 1073741824}}})");
  EXPECT_GT(peak(bucket, Phase::generation), peak(plain, Phase::generation));
  const std::int64_t embedding = kVocabulary * kHidden * 4;
  const MemoryProfile profile = simulate_memory(lower_rlhf(*bucket.rlhf));
  std::int64_t states = 0;
  for (const std::int64_t bytes : profile.at_start) states += bytes;
  const std::int64_t shards = peak(bucket, Phase::generation) - states - 2 * kBucket - embedding;
  EXPECT_NEAR(static_cast<double>(shards), 494032768.0 * 4 / 8, 1e6);
  // Adapters alone: all of the model is gathered for them, or a layer at a time.
  const auto lora = [](const char* layered) {
    return peak(
        changed(std::string(R"({"workload": {"method": "lora", "rollout": {"weight_bucket": 0)") +
                layered + "}}}"),
        Phase::generation);
  };
  EXPECT_GT(lora("") - lora(R"(, "layered_summon": true)"), std::int64_t{1} << 30);
}

/// mem_fraction_static is of weights and cache alone, a token a page.
TEST(Sglang, SharesOutWeightsAndCacheAlone) {
  const Job job = changed(R"({"workload": {"rollout": {"engine": "sglang"}}})");
  const EngineMemory m =
      engine_memory(*job.rlhf->rollout, *job.rlhf->generator, job.rlhf->generation);
  const auto total = static_cast<double>(job.plan.cluster.gpu.usable.count());
  EXPECT_EQ(m.block_bytes, 2 * 2 * 64 * 2 * 24);  // a token: 2 heads of 64, 24 layers
  EXPECT_NEAR(static_cast<double>(m.weights + m.cache), total * 0.4, 1e5);
  EXPECT_EQ(m.budget - m.activations, static_cast<std::int64_t>(std::ceil(total * 0.4)));
  const Job eager = changed(R"({"workload": {"rollout": {"engine": "sglang",
                                                         "cuda_graphs": false}}})");
  const EngineMemory without =
      engine_memory(*eager.rlhf->rollout, *eager.rlhf->generator, eager.rlhf->generation);
  EXPECT_EQ(m.activations - without.activations, std::int64_t{256} << 21);
  EXPECT_EQ(m.cache, without.cache);
  EXPECT_THAT(error_text([] {
                changed(R"({"model": "llama-3.1-8b", "workload": {"rollout": {
                    "engine": "sglang", "gpu_memory_utilization": 0.1}}})");
              }),
              HasSubstr("at least 0.2"));
}

Job under_megatron(const std::string& patch) {
  Json job = parse_json(patch, "patch");
  job["trainer"] = nullptr;
  job["precision"] = "bf16-master";
  job["framework"] = Json{{"name", "megatron"},
                          {"reduce_dtype", nullptr},
                          {"overlap_grad_reduce", false},
                          {"overlap_param_gather", false}};
  return changed(job.dump());
}

/// A reference has its stage's parameters alone, in 16 bits.
TEST(VerlMegatron, FrozenModelsHaveTheirStage) {
  const auto parameters = [](const std::string& work, std::int64_t rank) {
    Job job = under_megatron(R"({"model": "llama-3.2-1b", "parallel": {"pipeline": 2},
                                 "workload": )" +
                             work + "}");
    job.rlhf->rank = rank;
    std::int64_t bytes = 0;
    for (const Event& e : lower_rlhf(*job.rlhf).resident)
      if (e.category == Category::parameters) bytes += e.bytes * e.count;
    return bytes;
  };
  // Layers of 60,821,504; tied embeddings of 128,256 × 2,048 on both stages, and the last norm.
  const std::int64_t layers = std::int64_t{8} * 60821504, words = std::int64_t{128256} * 2048;
  const std::string copy = R"({"reference": "copy"})";
  for (const std::int64_t rank : {0, 4}) {
    const std::int64_t own = 2 * (layers + words + (rank > 0 ? 2048 : 0));
    EXPECT_NEAR(static_cast<double>(parameters(copy, rank) - parameters("{}", rank)),
                static_cast<double>(own), 1e5)
        << rank;
  }
}

/// The last stage has the logits, of its part of the words; the estimate is of the worst stage.
TEST(VerlMegatron, EstimatesTheWorstStage) {
  Job job = under_megatron(R"({"model": "llama-3.2-1b", "parallel": {"pipeline": 2, "tensor": 2},
      "workload": {"gradient_accumulation": 4, "scoring_entropy": "compiled"}})");
  const Estimate whole = estimate_rlhf(*job.rlhf, load_calibration());
  std::int64_t worst = 0;
  for (const std::int64_t rank : {0, 4}) {
    job.rlhf->rank = rank;
    const Program program = lower_rlhf(*job.rlhf);
    const Played played = play(program);
    EXPECT_EQ(played.at_end, played.profile.at_start) << rank;
    worst = std::max(worst, played.profile.peak);
  }
  EXPECT_GE(whole.device.point, worst);
  // Its scores make fp32 logits of half the words and, for the entropy, two more of them.
  const std::int64_t logits = std::int64_t{8} * 1024 * 128256 / 2;
  EXPECT_GT(peak(job, Phase::experience),
            job.rlhf->roles.front().model.parameter_count() / 4 * 2 + 3 * 4 * logits);
}

/// A stage scores with its own layers, and hands on what they make: the first has no logits.
TEST(VerlMegatron, ScoresWithTheLayersOfAStage) {
  const auto scoring = [](int stages, std::int64_t rank) {
    Job job =
        under_megatron(R"({"model": "llama-3.2-1b", "parallel": {"pipeline": )" +
                       std::to_string(stages) + R"(}, "workload": {"gradient_accumulation": 4}})");
    job.rlhf->rank = rank;
    for (RlhfPart& part : rlhf_parts(*job.rlhf))
      if (part.phase == Phase::experience) return std::move(part.program);
    return Program{};
  };
  const auto logits_of = [](const Program& program) {
    const Played played = play(program);
    EXPECT_EQ(played.at_end, played.profile.at_start);
    return played.profile.at_peak[static_cast<std::size_t>(Category::logits_and_loss)];
  };
  const auto kernels_of = [](const Program& program) {
    std::int64_t sum = 0, times = 1;
    std::vector<std::int64_t> around;
    for (const Event& e : program.events) {
      if (e.kind == Event::Kind::begin_repeat) {
        around.push_back(times);
        times *= e.count;
      } else if (e.kind == Event::Kind::end_repeat) {
        times = around.back();
        around.pop_back();
      } else if (e.kind == Event::Kind::compute) {
        sum += times * e.count;
      }
    }
    return sum;
  };
  const Program whole = scoring(1, 0), first = scoring(2, 0), last = scoring(2, 4);
  const std::int64_t logits = std::int64_t{8} * 1024 * 128256;
  EXPECT_EQ(logits_of(first), 0);
  EXPECT_GE(logits_of(last), 2 * logits);
  EXPECT_EQ(kernels_of(first) + kernels_of(last), kernels_of(whole));
}

/// What an exchange of weights moves, and in how many calls.
struct Handed {
  std::int64_t bytes = 0, calls = 0;
};
Handed handed(const Job& job, Collective kind, Group group) {
  Handed sum;
  for (const Event& e : lower_rlhf(*job.rlhf).events)
    if (e.kind == Event::Kind::collective && e.what == "weights to the rollout engine" &&
        e.collective == kind && e.group == group) {
      sum.bytes += e.bytes;
      sum.calls += e.count;
    }
  return sum;
}

/// verl 0.8, utils/megatron_utils.py, per_tensor_generator: a stage's tensors to the others as they
/// are cut, one of each rank's experts at a time, the rest over the ranks of a layer. Nothing moves
/// over a group of one.
TEST(VerlMegatron, GathersWeightsOverTheGroupsThatDivideThem) {
  const Job stages = under_megatron(R"({"model": "llama-3.2-1b", "parallel": {"pipeline": 2}})");
  const std::int64_t all = stages.rlhf->roles.front().model.parameter_count() * 2;
  EXPECT_EQ(handed(stages, Collective::broadcast, Group::pipeline).bytes, all);
  EXPECT_EQ(handed(stages, Collective::all_gather, Group::tensor).calls, 0);
  const Job both =
      under_megatron(R"({"model": "llama-3.2-1b", "parallel": {"pipeline": 2, "tensor": 2}})");
  EXPECT_EQ(handed(both, Collective::broadcast, Group::pipeline).bytes, all / 2);
  EXPECT_EQ(handed(both, Collective::all_gather, Group::tensor).bytes, all);
  const Job experts = under_megatron(R"({"model": "qwen3-30b-a3b", "parallel": {"expert": 8},
                                        "workload": {"rollout": {"gpu_memory_utilization": 0.9}}})");
  const Handed gathered = handed(experts, Collective::all_gather, Group::expert);
  // 48 layers of 128 experts of 3 · 768 · 2,048; a rank has 16 of them, each in two tensors.
  EXPECT_EQ(gathered.bytes, std::int64_t{48} * 128 * 3 * 768 * 2048 * 2);
  EXPECT_EQ(gathered.calls, 48 * 16 * 2);
}

/// A critic's layers are divided as the actor's are; its head, a value for each token, is whole.
TEST(VerlMegatron, LeavesTheCriticsHeadWhole) {
  const auto parameters = [](int tensor) {
    Job job = under_megatron(R"({"model": "llama-3.2-1b", "parallel": {"tensor": )" +
                             std::to_string(tensor) +
                             R"(}, "workload": {"algorithm": "ppo", "rewards": "function"}})");
    const Played played = play(lower_rlhf(*job.rlhf));
    EXPECT_EQ(played.at_end, played.profile.at_start) << tensor;
    return played.profile.at_start[static_cast<std::size_t>(Category::parameters)];
  };
  // Sixteen layers, words and their copy in the critic; norms are whole.
  EXPECT_NEAR(static_cast<double>(parameters(2)), static_cast<double>(parameters(1)) / 2, 4e5);
}

TEST(VerlMegatron, AsksForAnEngine) {
  EXPECT_THAT(error_text([] { under_megatron(R"({"workload": {"rollout": null}})"); }),
              HasSubstr("in a rollout engine alone"));
}

TEST(Verl, PpoMayHaveNoRewardModelAndNoReference) {
  const Job job = changed(R"({"workload": {"algorithm": "ppo", "rewards": "function"}})");
  EXPECT_EQ(job.rlhf->roles.size(), 2);
  const Job usual = changed(R"({"workload": {"algorithm": "ppo", "reference": "copy",
                                                  "rewards": "model"}})");
  EXPECT_EQ(usual.rlhf->roles.size(), 4);
}

}  // namespace
}  // namespace shardplan::verl_test
