// What trainers do on their own, by hand from transformers 5.17 and accelerate 1.15.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/optimizer_memory.h"
#include "lowering/rank_model.h"
#include "optimizers/registry.h"
#include "simulator/memory.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "trainers/registry.h"

namespace shardplan::trainers_test {
namespace {

using ::testing::HasSubstr;

Job job(const std::string& text) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  return load_job(parse_json("{" + text + "}", "job.json"), "job.json", context);
}

std::string on(const std::string& framework, const std::string& trainer) {
  return R"("model": "qwen3-0.6b", "cluster": "2xH100", "framework": )" + framework +
         R"(, "trainer": ")" + trainer + R"(")";
}

const TrainerDescription* trainer_named(std::string_view name) {
  return *std::ranges::find(trainers(), name, &TrainerDescription::name);
}

TEST(Trainer, IsALoopUnlessAJobSaysMore) {
  EXPECT_EQ(job(R"("model": "gpt2", "cluster": "1xH100")").plan.trainer, &default_trainer());
  EXPECT_EQ(job(on(R"("ddp")", "hf_trainer")).plan.trainer->name, "hf_trainer");
  EXPECT_THAT(error_text([] { job(on(R"("ddp")", "hf_trainr")); }), HasSubstr("hf_trainer"));
}

TEST(Trainer, RunsNoProgramsOfTheirOwn) {
  EXPECT_THAT(error_text([] { job(on(R"("megatron")", "hf_trainer")); }),
              HasSubstr("cannot run megatron"));
  EXPECT_THAT(
      error_text([] { job(on(R"({"name": "deepspeed", "zero_stage": 3})", "torchtitan")); }),
      HasSubstr("cannot run deepspeed"));
  EXPECT_THAT(error_text([] {
                job(R"("model": "gpt2", "cluster": "1xH100", "trainer": "trl",
                       "workload": {"kind": "inference"})");
              }),
              HasSubstr("is for training"));
}

TEST(Trainer, AutocastsWhatHasNoPrecisionOfItsOwn) {
  EXPECT_TRUE(job(on(R"("fsdp1")", "hf_trainer")).plan.autocasts_forward());
  EXPECT_FALSE(job(on(R"("fsdp2")", "hf_trainer")).plan.autocasts_forward());
  EXPECT_TRUE(job(on(R"("fsdp2")", "verl")).plan.autocasts_forward());
  EXPECT_TRUE(job(on(R"("ddp")", "trl")).plan.autocasts_forward());
  EXPECT_FALSE(job(on(R"("ddp")", "loop")).plan.autocasts_forward());
  EXPECT_FALSE(
      job(on(R"({"name": "deepspeed", "zero_stage": 2})", "hf_trainer")).plan.autocasts_forward());
  EXPECT_FALSE(
      job(on(R"("ddp")", "hf_trainer") + R"(, "precision": "fp32")").plan.autocasts_forward());
}

/// accelerate upcasts what trains under FSDP, so that a 16-bit model is as one under autocast.
TEST(Trainer, HoldsWhatTrainsUnderFsdpInFp32) {
  const std::string pure = R"(, "precision": "bf16-pure")";
  for (const auto* framework : {R"("fsdp2")", R"("fsdp1")"}) {
    const Job held = job(on(framework, "hf_trainer") + pure);
    EXPECT_EQ(held.plan.precision.params, DType::f32) << framework;
    EXPECT_EQ(held.plan.precision.compute, DType::bf16) << framework;
    ASSERT_FALSE(held.diagnostics.empty()) << framework;
    EXPECT_THAT(held.diagnostics.front().message, HasSubstr("in fp32")) << framework;
    EXPECT_EQ(job(on(framework, "torchtitan") + pure).plan.precision.params, DType::bf16);
  }
  const std::string types = R"(, "precision": {"params": "bf16"})";
  const Job said = job(on(R"("fsdp2")", "hf_trainer") + types);
  EXPECT_EQ(said.plan.precision.params, DType::bf16);
  EXPECT_EQ(said.plan.precision.name, "bf16-pure");
  EXPECT_EQ(job(on(R"("fsdp2")", "axolotl") + pure).plan.precision.params, DType::bf16);
  EXPECT_EQ(job(on(R"("ddp")", "hf_trainer") + pure).plan.precision.params, DType::bf16);
  EXPECT_EQ(job(on(R"("fsdp2")", "hf_trainer") + pure +
                R"(, "workload": {"kind": "train", "method": "lora"})")
                .plan.precision.params,
            DType::bf16);
}

/// transformers, training_args.py: with torch_compile, but for fp16.
TEST(Trainer, AllowsTf32WhereItCompiles) {
  const auto allows = [](const std::string& trainer, const std::string& more) {
    return job(on(R"("ddp")", trainer) + more).plan.multiplies_in_tf32();
  };
  const std::string compile = R"(, "compile": true, "precision": )";
  EXPECT_TRUE(allows("hf_trainer", compile + R"("fp32")"));
  EXPECT_TRUE(allows("hf_trainer", compile + R"("bf16-autocast")"));
  EXPECT_FALSE(allows("hf_trainer", compile + R"("fp16-autocast")"));
  EXPECT_FALSE(allows("hf_trainer", R"(, "precision": "fp32")"));
  EXPECT_FALSE(allows("loop", compile + R"("fp32")"));
}

/// What a block keeps in bf16 with and without autocast around it.
std::int64_t kept_by_block(std::string_view config, bool wrapped) {
  const Model model = model_of(config);
  Regime regime{DType::bf16, DType::bf16};
  regime.wrapped = wrapped;
  const TapeRun run = run_tape(model, model.segments[1], regime, {.batch = 1, .sequence = 1024},
                               DType::bf16, TapeMode::keep);
  std::int64_t kept = 0;
  for (const TapeEvent& e : run.forward) {
    if (e.kind == TapeEvent::Kind::alloc) kept += e.bytes;
    if (e.kind == TapeEvent::Kind::free) kept -= e.bytes;
  }
  return kept / 1024;
}

// Under autocast torch.nn.LayerNorm computes in fp32: it keeps a copy of its input (4h) where the
// input itself (2h) was kept, and each linear behind it casts its result back: queries, keys and
// values (3 · 2h) and the first of the MLP (2h), where one result served each (2h). ReLU and the
// residuals stay in bf16.
TEST(Trainer, RunsLayerNormInFp32UnderAutocast) {
  constexpr std::string_view kOpt = R"({"model_type": "opt", "hidden_size": 512, "ffn_dim": 2048,
    "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 1000,
    "max_position_embeddings": 1024, "word_embed_proj_dim": 512, "dropout": 0.0,
    "attention_dropout": 0.0})";
  EXPECT_EQ(kept_by_block(kOpt, true) - kept_by_block(kOpt, false),
            (2 * (4 - 2) + (3 * 2 - 2) + (2 - 2)) * 512);
}

TEST(Trainer, ChangesNothingOfNormsThatAreInFp32Anyway) {
  constexpr std::string_view kLlama = R"({"model_type": "llama", "hidden_size": 512,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8,
    "intermediate_size": 1024, "vocab_size": 1000})";
  EXPECT_EQ(kept_by_block(kLlama, true), kept_by_block(kLlama, false));
}

std::int64_t forward_peak(const std::string& trainer) {
  const Job j = job(R"("model": "bert-large", "cluster": "1xH200", "precision": "bf16-autocast",
    "workload": {"micro_batch": 16, "sequence_length": 512}, "trainer": ")" +
                    trainer + "\"");
  const RankModel share(j.model, j.plan);
  const MemoryProfile m = simulate_memory(lower(share.model(), j.plan, share.run(), 0));
  return m.phases[static_cast<std::size_t>(Phase::forward)].peak -
         m.phases[static_cast<std::size_t>(Phase::forward)].end;
}

// bert-large, 16 x 512 tokens, 30,522 words: when the logits (2 bytes) are copied to fp32 (4
// bytes), the loss has made what it keeps. A run had 500 + 1,000 million bytes above the end of the
// forward pass (16,358 million in all).
TEST(Trainer, CopiesLogitsToFp32) {
  constexpr std::int64_t kLogits = 16 * 512 * 30522;
  EXPECT_GE(forward_peak("hf_trainer"), 6 * kLogits);
  EXPECT_LT(forward_peak("hf_trainer"), 6 * kLogits + 64'000'000);
  EXPECT_LT(forward_peak("loop"), 3 * kLogits);
}

// TRL's loss keeps no logits, and in the backward pass has the head's gradient in fp32 (4 bytes)
// and cast to the weight's type (2 bytes), beside a tile of 512 tokens and 32,768 words.
TEST(Trl, MakesTheHeadsGradientInFp32) {
  constexpr std::int64_t kWords = 32000, kWidth = 1024, kTokens = 512;
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.sequence_length = kTokens;
  plan.trainer = trainer_named("trl");
  const Model model = model_of(R"({"model_type": "llama", "hidden_size": 1024,
    "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 8,
    "intermediate_size": 1024, "vocab_size": 32000, "tie_word_embeddings": false})",
                               build_options(plan));
  const RankModel share(model, plan);
  const MemoryProfile m = simulate_memory(lower(share.model(), plan, share.run(), 0));
  const std::int64_t more = m.of(Phase::backward).peak - m.of(Phase::forward).end;
  const std::int64_t rows = kTokens * kWidth * (4 + 2);
  constexpr std::int64_t kGradientOfLoss = 512;  // a scalar's block
  EXPECT_EQ(more, 6 * kWords * kWidth + 2 * kTokens * 32768 + rows + kGradientOfLoss);
}

TEST(Trl, RefusesLigersOwnHead) {
  EXPECT_THAT(error_text([] {
                job(on(R"("ddp")", "trl") + R"(, "kernels": ["fused_linear_cross_entropy"])");
              }),
              HasSubstr("own fused head"));
}

TEST(Trainer, HasAnAdafactorOfItsOwn) {
  const Job own = job(on(R"("ddp")", "hf_trainer") + R"(, "optimizer": "adafactor")");
  EXPECT_EQ(own.plan.optimizer.kind, find_optimizer("adafactor_transformers"));
  const Job plain = job(on(R"("ddp")", "loop") + R"(, "optimizer": "adafactor")");
  EXPECT_EQ(plain.plan.optimizer.kind, find_optimizer("adafactor"));
}

/// Temporaries of transformers' Adafactor over matrices of these rows, 512 wide.
std::int64_t adafactor_temporaries(const std::vector<std::int64_t>& rows, DType type) {
  std::vector<Parameter> parameters;
  for (const std::int64_t n : rows) {
    Parameter p;
    p.shape = {n, 512};
    p.numel = n * 512;
    parameters.push_back(p);
  }
  std::vector<OwnedTensor> owned;
  for (const Parameter& p : parameters) owned.push_back({&p, p.numel, 1});
  Optimizer optimizer;
  optimizer.kind = find_optimizer("adafactor_transformers");
  optimizer.implementation = OptimizerImplementation::for_loop;
  return total_bytes(optimizer_memory(owned, optimizer, type, Given::tensors).temporaries);
}

// The peaks of its own step() on a CPU, transformers 5.17: 18,874,392 bytes; 16,787,460, where the
// largest matrix comes first; 10,485,784 in fp32. Scalars are left out here.
TEST(TransformersAdafactor, TakesWhatItsOwnStepTakes) {
  EXPECT_EQ(adafactor_temporaries({512, 1024, 2048}, DType::bf16), 18'874'368);
  EXPECT_EQ(adafactor_temporaries({2048, 1024, 512}, DType::bf16), 16'777'216);
  EXPECT_EQ(adafactor_temporaries({512, 1024, 2048}, DType::f32), 10'485'760);
}

/// Bytes alive at the end of the forward pass of the last of two micro-batches.
std::int64_t forward_end(const TrainerDescription* trainer, std::optional<bool> sync) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 8);
  plan.framework.fsdp2.reduce_dtype = DType::f32;
  plan.framework.fsdp2.sync_each_batch = sync;
  plan.workload.gradient_accumulation = 2;
  plan.trainer = trainer;
  const Model model = model_of(R"({"model_type": "llama", "hidden_size": 1024,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    "intermediate_size": 2816, "vocab_size": 4096, "tie_word_embeddings": false})");
  const RankModel share(model, plan);
  return simulate_memory(lower(share.model(), plan, share.run(), 0))
      .phases[static_cast<std::size_t>(Phase::forward)]
      .end;
}

/// Turns of Python's loops in a step under transformers' Trainer.
std::int64_t turns(const std::string& workload) {
  const Job j = job(R"("model": "llama-3.2-1b", "cluster": "1xH100", "trainer": "hf_trainer",
                       "precision": "bf16-pure", "workload": )" +
                    workload);
  const RankModel share(j.model, j.plan);
  const Program program = lower(share.model(), j.plan, share.run(), 0);
  std::int64_t sum = 0;
  for (const Kernel& k : program.kernels)
    if (k.issue == Issue::loop && k.kind == KernelKind::none) sum += k.calls;
  return sum;
}

// 16 blocks with two linears adapted: ten modules beside each, two of which hold a matrix.
TEST(Trainer, WalksOverTheModulesThatPeftPutsBesideLinears) {
  const std::string lora =
      R"({"kind": "train", "method": "lora", "lora": {"rank": 8, "targets": ["q_proj", "v_proj"]}})";
  EXPECT_EQ(turns(lora) - turns(R"({"kind": "train"})"), 16 * 2 * 10);
}

// Without synchronisation every GPU keeps 4 bytes for each parameter between micro-batches; with it
// an eighth of that.
TEST(Accumulation, KeepsWholeGradientsUnderTrainer) {
  constexpr std::int64_t kBlock = 4 * 1024 * 1024 + 3 * 1024 * 2816 + 2 * 1024;
  constexpr std::int64_t kParameters = 4 * kBlock + 2 * 4096 * 1024 + 1024;
  const TrainerDescription* hf = trainer_named("hf_trainer");
  const std::int64_t synced = forward_end(&default_trainer(), std::nullopt);
  EXPECT_EQ(forward_end(&default_trainer(), false) - synced, 4 * kParameters / 8 * 7);
  EXPECT_EQ(forward_end(hf, std::nullopt), forward_end(hf, false));
  EXPECT_EQ(forward_end(hf, true) - forward_end(hf, false), -4 * kParameters / 8 * 7);
}

}  // namespace
}  // namespace shardplan::trainers_test
