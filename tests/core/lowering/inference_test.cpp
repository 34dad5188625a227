// Generation: the KV cache and the passes over it, beside closed forms and beside measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/inference/generate.h"
#include "lowering/inference/workspace.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan {
namespace {

/// Three layers; with `kv_heads` of 64 columns each.
std::string llama(std::int64_t kv_heads) {
  return Json{{"model_type", "llama"},     {"hidden_size", 512},
              {"intermediate_size", 1408}, {"num_hidden_layers", 3},
              {"num_attention_heads", 8},  {"num_key_value_heads", kv_heads},
              {"vocab_size", 1000}}
      .dump();
}

std::string sliding(std::int64_t window) {
  return Json{{"model_type", "mistral"}, {"hidden_size", 512},       {"intermediate_size", 1408},
              {"num_hidden_layers", 3},  {"num_attention_heads", 8}, {"num_key_value_heads", 2},
              {"vocab_size", 1000},      {"sliding_window", window}}
      .dump();
}

Plan generation(std::int64_t batch, std::int64_t prompt, std::int64_t new_tokens) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.kind = WorkKind::inference;
  plan.workload.micro_batch = batch;
  plan.workload.sequence_length = prompt;
  plan.workload.generation.new_tokens = new_tokens;
  return plan;
}

Model generator(const std::string& config, Quantization weights = Quantization::none) {
  return model_of(config, {.cached = true, .weights = weights});
}

MemoryProfile run(const std::string& config, const Plan& plan) {
  return simulate_memory(lower_generation(generator(config), plan));
}

/// Live bytes of the cache when the phase ends: what is alive beyond before it, less what is known.
std::int64_t cache_at_end(const std::string& config, const Plan& plan) {
  const Program program = lower_generation(generator(config), plan);
  const MemoryProfile memory = simulate_memory(program);
  const std::int64_t token = 512;  // ids of the last tokens
  return memory.of(Phase::decode).end - program.model_bytes - token;
}

TEST(KvCache, HoldsKeysAndValuesOfEveryTokenInEveryLayer) {
  for (const std::int64_t kv_heads : {8, 2, 1}) {  // multi-head, grouped, multi-query
    const std::int64_t tokens = 4 * (256 + 32);
    EXPECT_EQ(cache_at_end(llama(kv_heads), generation(4, 256, 32)),
              2 * 3 * kv_heads * 64 * tokens * 2)
        << kv_heads;
  }
}

TEST(KvCache, TakesHalfInFp8) {
  Plan plan = generation(4, 256, 32);
  const std::int64_t whole = cache_at_end(llama(2), plan);
  plan.workload.generation.fp8_cache = true;
  EXPECT_EQ(cache_at_end(llama(2), plan), whole / 2);
}

TEST(KvCache, IsTwiceThereForTheLayerThatGrows) {
  const Plan plan = generation(4, 1024, 32);
  const MemoryProfile memory = run(llama(2), plan);
  // Beside all caches at their end: the keys of one layer from before, and small tensors of one
  // token. Values of the last layer are one token short.
  const std::int64_t keys = 2 * 64 * 4 * (1024 + 31) * 2;
  const std::int64_t over = memory.of(Phase::decode).peak - memory.of(Phase::decode).end;
  EXPECT_GE(over, keys - 4 * 2 * 64 * 2);
  EXPECT_LE(over, keys + 64 * 1024);
}

TEST(KvCache, OfASlidingLayerKeepsTheWindow) {
  const std::int64_t window = 128;
  EXPECT_EQ(cache_at_end(sliding(window), generation(4, 512, 8)), 2 * 3 * 2 * 64 * 4 * window * 2);
  // Until the first new token the whole prompt's storage stays.
  const Program program = lower_generation(generator(sliding(window)), generation(4, 512, 8));
  const std::int64_t logits = 8192;  // 4 × 1000 in bf16, rounded
  EXPECT_EQ(simulate_memory(program).of(Phase::prefill).end - program.model_bytes - logits,
            2 * 3 * 2 * 64 * 4 * 512 * 2);
}

TEST(KvCache, OfASlidingLayerIsThatOfAFullOneWithinTheWindow) {
  const Plan plan = generation(2, 100, 20);
  EXPECT_EQ(cache_at_end(sliding(4096), plan), cache_at_end(llama(2), plan));
}

TEST(KvCache, OfLatentAttentionHoldsTheLatent) {
  const std::string config =
      R"({"model_type": "deepseek_v3", "hidden_size": 512, "intermediate_size": 1024,
          "moe_intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8,
          "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
          "first_k_dense_replace": 1, "kv_lora_rank": 128, "qk_rope_head_dim": 64,
          "q_lora_rank": null, "vocab_size": 1000})";
  EXPECT_EQ(cache_at_end(config, generation(4, 256, 32)), 3 * (128 + 64) * 4 * (256 + 32) * 2);
}

TEST(Generation, KeepsOneRowOfLogits) {
  const Program program = lower_generation(generator(llama(2)), generation(4, 256, 1));
  std::int64_t logits = 0;
  for (const Event& e : program.blocks)
    if (e.kind == Event::Kind::alloc && e.category == Category::logits_and_loss)
      logits = std::max(logits, e.bytes);
  EXPECT_EQ(logits, 8192);  // 4 × 1000 × 2 bytes, in blocks of 512
}

TEST(Generation, LeavesNothingBehind) {
  for (const auto& config : {llama(2), sliding(64)}) {
    for (const bool streamed : {false, true}) {
      Plan plan = generation(2, 200, 5);
      if (streamed) {
        plan.framework.kind = FrameworkKind::deepspeed;
        plan.framework.deepspeed.zero.stage = 3;
        plan.framework.deepspeed.zero.offload_param.device = OffloadDevice::cpu;
      }
      const Played played = play(lower_generation(generator(config), plan));
      EXPECT_EQ(played.at_end, played.profile.at_start);
      for (const std::int64_t least : played.least) EXPECT_GE(least, 0);
    }
  }
}

TEST(Generation, WritesOutManyTokensAsSomeThatGrowAsMuch) {
  const std::vector<Pass> passes = decode_passes(generation(1, 100, 1000).workload);
  EXPECT_LT(passes.size(), 100U);
  EXPECT_EQ(passes.back().past, 100 + 1000 - 1);
  EXPECT_EQ(decode_passes(generation(1, 100, 7).workload).size(), 7U);
}

TEST(Weights, TakeTheBytesOfTheirFormat) {
  // 3 layers of q, k, v, o (512 → 512, 128, 128; 512 → 512) and three of 512 × 1408.
  const std::int64_t in_blocks = 3 * (2 * 512 * 512 + 2 * 512 * 128 + 3 * 512 * 1408);
  const auto bytes = [&](Quantization weights) {
    Plan plan = generation(1, 16, 1);
    plan.workload.generation.weights = weights;
    const MemoryProfile m = simulate_memory(lower_generation(generator(llama(2), weights), plan));
    return m.at_start[index_of(Category::parameters)];
  };
  const std::int64_t whole = bytes(Quantization::none);
  const auto saved_each = [&](Quantization weights) {
    return static_cast<double>(whole - bytes(weights)) / static_cast<double>(in_blocks);
  };
  EXPECT_NEAR(saved_each(Quantization::fp8), 1.0, 0.002);
  EXPECT_NEAR(saved_each(Quantization::int8), 1.0, 0.01);             // 4 bytes a row
  EXPECT_NEAR(saved_each(Quantization::nf4), 1.5 - 4.0 / 64, 0.002);  // a scale a block of 64
  EXPECT_NEAR(saved_each(Quantization::nf4_double), 1.5 - 1.0 / 64, 0.003);
  EXPECT_NEAR(saved_each(Quantization::awq), 1.5 - 2.5 / 128, 0.003);  // scale and zero point
  EXPECT_LT(saved_each(Quantization::gptq), saved_each(Quantization::awq));
}

TEST(ZeroInference, StreamsEveryWeightInEveryPass) {
  Plan plan = generation(2, 200, 4);
  plan.framework.kind = FrameworkKind::deepspeed;
  plan.framework.deepspeed.zero.stage = 3;
  plan.framework.deepspeed.zero.offload_param.device = OffloadDevice::cpu;
  plan.framework.deepspeed.zero.param_persistence_threshold = 0;
  const Model model = generator(llama(2));
  const Program program = lower_generation(model, plan);
  std::int64_t copied = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::copy) copied += e.bytes * times;
  });
  EXPECT_EQ(copied, 5 * 2 * model.parameter_count());  // the prompt and four tokens
  const MemoryProfile memory = simulate_memory(program);
  EXPECT_EQ(memory.at_start[index_of(Category::parameters)], 0);
  EXPECT_GE(program.host.total(), 2 * model.parameter_count());
}

TEST(DeepSpeedInference, TakesTheWorkspaceOfItsSource) {
  const ModelFacts facts{.hidden = 4096, .layers = 32, .attention_heads = 32};
  const std::int64_t batch = 2, most = 1024, tp = 4;
  // Elements a token: ten hidden rows, a row of scores for this GPU's heads, keys and values of
  // its heads in every layer.
  const std::int64_t each =
      10 * 4096 * batch + batch * (32 / tp) * most + 32 * batch * (4096 / tp) * 2;
  const InferenceWorkspace room =
      deepspeed_workspace(facts, batch, most, tp, DType::f16, 40 * 1024 * kMiB);
  EXPECT_EQ(room.tokens, most);
  EXPECT_EQ(room.bytes, each * most * 2);
  const InferenceWorkspace tight =
      deepspeed_workspace(facts, batch, most, tp, DType::f16, 300 * kMiB);
  EXPECT_LT(tight.tokens, most);
  EXPECT_LE(tight.bytes, 200 * kMiB);
}

TEST(DeepSpeedInference, PadsHeadsForFlashAttention) {
  const ModelFacts narrow{.hidden = 80 * 32, .layers = 1, .attention_heads = 32};
  const ModelFacts wide{.hidden = 128 * 32, .layers = 1, .attention_heads = 32};
  const auto bytes = [](const ModelFacts& f) {
    return deepspeed_workspace(f, 1, 128, 1, DType::f16, 40 * 1024 * kMiB).bytes;
  };
  EXPECT_EQ(bytes(narrow), bytes(wide));
}

/// Records of one kind, as (allocated, phases) of prediction and measurement.
struct Errors {
  double sum = 0, largest = 0;
  int count = 0;
  void add(double predicted, double measured) {
    const double error = std::abs(predicted - measured) / measured;
    sum += error;
    largest = std::max(largest, error);
    ++count;
  }
  double mean() const { return sum / count; }
};

/// The program that measured has a second cuBLAS workspace, of autograd's thread, which inference
/// alone has no use for.
constexpr double kSecondWorkspace = 32.0 * kMiB;

void compare(const Json& record, double extra, Errors& peaks, Errors& ends) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const std::string name = record.at("name");
  const Job job = load_job(record.at("job"), name, {.hardware = &hardware, .directory = ""});
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  const Json& phases = record.at("measured").at("phases");
  for (const auto& [phase, key] :
       {std::pair{Phase::prefill, "prefill"}, std::pair{Phase::decode, "decode"}}) {
    const PhaseBytes& bytes = e.phases[static_cast<std::size_t>(phase)];
    const std::string text(key);
    peaks.add(static_cast<double>(bytes.peak), phases.at(text + "_peak").get<double>() - extra);
    ends.add(static_cast<double>(bytes.end), phases.at(text + "_end").get<double>() - extra);
  }
}

TEST(Generation, MeetsThePhasesOfMeasuredRuns) {
  Errors peaks, ends;
  const Json golden = read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/inference.json");
  for (const Json& record : golden.at("records")) compare(record, 0, peaks, ends);
  int records = 3;
  for (const auto& file : std::filesystem::directory_iterator(
           SHARDPLAN_SOURCE_DIR "/data/measurements/inference/single")) {
    const Json record = read_json_file(file.path().string());
    if (record.at("job").contains("parallel")) continue;
    compare(record, kSecondWorkspace, peaks, ends);
    ++records;
  }
  EXPECT_GE(records, 27);
  EXPECT_LT(peaks.mean(), 0.001);
  EXPECT_LT(peaks.largest, 0.006);
  EXPECT_LT(ends.mean(), 0.001);
  EXPECT_LT(ends.largest, 0.002);
}

TEST(Generation, NamesWhatIsWrong) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const auto error = [](const std::string& patch) {
    Json job = parse_json(R"({"cluster": "1xH100", "framework": "single",
        "workload": {"kind": "inference", "batch": 1, "prompt_length": 512, "new_tokens": 64}})",
                          "job");
    job["model"] = parse_json(llama(2), "model");
    job.merge_patch(parse_json(patch, "patch"));
    return error_text([&] { load_job(job, "job.json", {.hardware = &hardware, .directory = ""}); });
  };
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {R"({"model": "t5-small"})", {"workload.kind", "t5 generates nothing", "a decoder"}},
      {R"({"framework": "ddp"})", {"framework.name", "'ddp' does not run inference", "single"}},
      {R"({"workload": {"new_tokens": 0}})", {"workload.new_tokens"}},
      {R"({"workload": {"quantization": "nf5"}})", {"workload.quantization", "nf4"}},
      {R"({"workload": {"promt_length": 5}})", {"workload.promt_length", "prompt_length"}},
      {R"({"cluster": "3xH100", "framework": {"name": "deepspeed", "kernel_inject": true}})",
       {"cluster", "3 GPUs do not divide the model's 8 attention heads", "2 GPUs"}},
      {R"({"framework": {"name": "deepspeed", "kernel_inject": true, "max_out_tokens": 512}})",
       {"framework.max_out_tokens", "at least 576"}},
      {R"({"framework": {"name": "deepspeed", "kernel_inject": true}, "workload": {"kind": "train",
          "batch": null, "prompt_length": null, "new_tokens": null}})",
       {"framework.kernel_inject", "workload.kind inference"}},
  };
  for (const auto& [patch, parts] : cases)
    for (const std::string& part : parts)
      EXPECT_THAT(error(patch), ::testing::HasSubstr(part)) << patch;
}

TEST(Generation, IsBoundByTheWeightsItReadsOrByTheHost) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const auto seconds = [&](std::int64_t batch) {
    const Json job{
        {"model", "llama-3.1-8b"},
        {"cluster", "1xH200"},
        {"framework", "single"},
        {"workload",
         {{"kind", "inference"}, {"batch", batch}, {"prompt_length", 1024}, {"new_tokens", 32}}}};
    const Job loaded = load_job(job, "job", {.hardware = &hardware, .directory = ""});
    const GenerationTime t =
        *estimate(loaded.model, loaded.plan, load_calibration()).time.generation;
    // 15 GB of weights, the embeddings left out, at 4.8 TB/s.
    EXPECT_GT(t.decode_speed_of_light, 32 * 3.1e-3);
    EXPECT_GT(t.decode_seconds, t.decode_speed_of_light);
    return t.decode_seconds;
  };
  EXPECT_NEAR(seconds(8) / seconds(1), 1.0, 0.15);  // one weight serves all sequences
}

}  // namespace
}  // namespace shardplan
