// Bytes a token that a block keeps, against the closed forms: h hidden, f MLP, a heads of d, k
// key-value heads, V vocabulary, T tokens.
#include <gtest/gtest.h>

#include "program/tape.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

constexpr std::int64_t kTokens = 1024;  // every tensor is a multiple of the allocator's unit
const Sizes kSizes{2, kTokens / 2, 0};
constexpr Regime kPure{DType::bf16, DType::bf16};
constexpr Regime kAutocast{DType::f32, DType::bf16};

struct Usage {
  std::int64_t kept = 0, peak = 0;
};

/// What `events` leave behind and at most have of `category`, starting from nothing.
Usage usage(const std::vector<TapeEvent>& events, Category category, std::int64_t start = 0) {
  Usage u{start, start};
  for (const TapeEvent& e : events) {
    if (e.category != category) continue;
    if (e.kind == TapeEvent::Kind::alloc) u.kept += e.bytes;
    if (e.kind == TapeEvent::Kind::free) u.kept -= e.bytes;
    u.peak = std::max(u.peak, u.kept);
  }
  return u;
}

std::int64_t block_bytes_a_token(const Model& model, const Regime& regime) {
  const TapeRun run =
      run_tape(model, model.segments[1], regime, kSizes, regime.params, TapeMode::keep);
  return usage(run.forward, Category::activations).kept / kTokens;
}

struct Llama {
  std::int64_t h, f, a, k;
  std::int64_t d() const { return h / a; }
  std::int64_t pure() const { return 16 * h + 4 * a * d() + 4 * k * d() + 8 * f + 4 * a + 8; }
  std::int64_t autocast() const { return pure() + 10 * h; }
  Model model() const {
    return model_of(R"({"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 512)"
                    ", \"hidden_size\": " +
                    std::to_string(h) + ", \"intermediate_size\": " + std::to_string(f) +
                    ", \"num_attention_heads\": " + std::to_string(a) +
                    ", \"num_key_value_heads\": " + std::to_string(k) + "}");
  }
};

constexpr Llama k7B{4096, 11008, 32, 32}, k8B{4096, 14336, 32, 8}, k70B{8192, 28672, 64, 8};

TEST(LlamaBlock, KeepsTheClosedFormIn16Bit) {
  for (const Llama& l : {k7B, k8B, k70B})
    EXPECT_EQ(block_bytes_a_token(l.model(), kPure), l.pure());
  EXPECT_EQ(k7B.pure(), 186'504);
  EXPECT_EQ(k8B.pure(), 200'840);
  EXPECT_EQ(k70B.pure(), 397'576);
}

TEST(LlamaBlock, KeepsTheClosedFormUnderAutocast) {
  for (const Llama& l : {k7B, k8B, k70B})
    EXPECT_EQ(block_bytes_a_token(l.model(), kAutocast), l.autocast());
  EXPECT_EQ(k7B.autocast(), 227'464);
  EXPECT_EQ(k8B.autocast(), 241'800);
  EXPECT_EQ(k70B.autocast(), 479'496);
}

TEST(LlamaBlock, KeepsACastOfEveryWeightUnderAutocast) {
  const Model model = k8B.model();
  const TapeRun run =
      run_tape(model, model.segments[1], kAutocast, kSizes, DType::f32, TapeMode::keep);
  const std::int64_t weights = 2 * k8B.h * k8B.h + 2 * k8B.h * k8B.k * k8B.d() + 3 * k8B.h * k8B.f;
  EXPECT_EQ(usage(run.forward, Category::other).kept, 2 * weights);
}

TEST(LlamaBlock, KeepsOnlyItsInputWhenCheckpointed) {
  const Model model = k8B.model();
  for (const Regime& regime : {kPure, kAutocast}) {
    const TapeRun run =
        run_tape(model, model.segments[1], regime, kSizes, regime.params, TapeMode::discard);
    // The output is alive, and the input was not freed.
    EXPECT_EQ(usage(run.forward, Category::activations).kept,
              size_of(regime.params) * k8B.h * kTokens);
    EXPECT_TRUE(run.backward.empty());
  }
}

TEST(LlamaBlock, RecomputationKeepsWhatTheForwardPassWould) {
  const Model model = k8B.model();
  const TapeRun redo =
      run_tape(model, model.segments[1], kPure, kSizes, DType::bf16, TapeMode::redo);
  const Usage u = usage(redo.backward, Category::activations);
  EXPECT_GE(u.peak, k8B.pure() * kTokens);
  // The checkpoint and the gradient of the output go, the gradient of the input comes.
  EXPECT_EQ(u.kept, -2 * k8B.h * kTokens);
}

TEST(Gpt2Block, KeepsTheClosedForm) {
  const std::int64_t h = 768, a = 12;
  const auto model = [&](const char* activation) {
    return model_of(R"({"model_type": "gpt2", "activation_function": ")" + std::string(activation) +
                    "\"}");
  };
  // gelu_new is a composite of five tensors of 4h.
  EXPECT_EQ(block_bytes_a_token(model("gelu_new"), kPure), 58 * h + 4 * a + 16);
  EXPECT_EQ(block_bytes_a_token(model("gelu_new"), kAutocast), 86 * h + 4 * a + 16);
  // Fused, it is Korthikanti's 34.
  EXPECT_EQ(block_bytes_a_token(model("gelu"), kPure), 34 * h + 4 * a + 16);
  EXPECT_EQ(block_bytes_a_token(model("gelu"), kAutocast), 38 * h + 4 * a + 16);
}

TEST(LossOfAHead, Takes10BytesALogitForwardAnd12Backward) {
  const Model model = model_of(R"({"model_type": "llama", "num_hidden_layers": 2,
    "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
    "vocab_size": 32000})");
  const std::int64_t logits = kTokens * 32000;
  constexpr std::int64_t kScalars = 3 * kAllocationUnit + 8 * kTokens;  // the loss and the labels
  for (const Regime& regime : {kPure, kAutocast}) {
    const TapeRun run =
        run_tape(model, model.segments[2], regime, kSizes, regime.params, TapeMode::keep);
    const Usage forward = usage(run.forward, Category::logits_and_loss);
    EXPECT_GE(forward.peak, 10 * logits);
    EXPECT_LE(forward.peak, 10 * logits + kScalars);
    const Usage backward = usage(run.backward, Category::logits_and_loss, forward.kept);
    EXPECT_GE(backward.peak, 12 * logits);
    EXPECT_LE(backward.peak, 12 * logits + kScalars);
  }
}

TEST(Tape, CountsTwoFlopsAMultiplyAddAndTwiceAsManyBackward) {
  const Model model = k8B.model();
  const TapeRun run =
      run_tape(model, model.segments[1], kPure, kSizes, DType::bf16, TapeMode::keep);
  const double linear =
      2.0 * static_cast<double>(kTokens) *
      static_cast<double>(2 * k8B.h * k8B.h + 2 * k8B.h * k8B.k * k8B.d() + 3 * k8B.h * k8B.f);
  // The rest is attention: flash recomputes the scores, 2.5 times the forward backward.
  const auto flops = [](const std::vector<Kernel>& kernels) {
    double sum = 0;
    for (const Kernel& k : kernels) sum += flops_of(k);
    return sum;
  };
  const double attention = flops(run.forward_kernels) - linear;
  const double causal_half =
      2.0 * static_cast<double>(kTokens) * static_cast<double>(kSizes.sequence * k8B.h);
  EXPECT_DOUBLE_EQ(attention, causal_half);
  EXPECT_DOUBLE_EQ(flops(run.backward_kernels), 2 * linear + 2.5 * attention);
  // What is computed again does not count for MFU.
  EXPECT_DOUBLE_EQ(run.model_flops, 3 * (linear + attention));
}

TEST(LossOverNarrowLogits, TakesTheSoftmaxInTheirTypeAndTheLossInFp32) {
  // T5 under autocast: 16-bit logits and log-probabilities, and the fp32 copy that the loss reads.
  const Model model = model_of(R"({"model_type": "t5", "num_layers": 1, "d_model": 512,
    "vocab_size": 32000})");
  const std::int64_t logits = kTokens * 32000;
  const Sizes sizes{2, kTokens / 2, kTokens / 2};
  constexpr std::int64_t kScalars = 4 * kAllocationUnit + 8 * kTokens;
  const TapeRun run =
      run_tape(model, model.segments.back(), kAutocast, sizes, DType::f32, TapeMode::keep);
  const Usage forward = usage(run.forward, Category::logits_and_loss);
  EXPECT_NEAR(static_cast<double>(forward.peak), 8.0 * static_cast<double>(logits), kScalars);
  EXPECT_NEAR(static_cast<double>(forward.kept), 6.0 * static_cast<double>(logits), kScalars);
  // The fp32 gradient beside both; the copy is gone before the cast's backward narrows it.
  const Usage backward = usage(run.backward, Category::logits_and_loss, forward.kept);
  EXPECT_NEAR(static_cast<double>(backward.peak), 10.0 * static_cast<double>(logits), kScalars);
}

TEST(TiedEmbedding, AddsTheHeadsGradientIntoAThirdTensorUnlessAutocastCastIt) {
  const Model model = model_of(R"({"model_type": "llama", "num_hidden_layers": 2,
    "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
    "vocab_size": 32000, "tie_word_embeddings": true})");
  const auto extra = [&](const Regime& regime) {
    const TapeRun run =
        run_tape(model, model.segments[0], regime, kSizes, regime.params, TapeMode::keep);
    return usage(run.backward, Category::gradients).peak;
  };
  EXPECT_EQ(extra(kPure), 512 * 32000 * 2);
  EXPECT_EQ(extra(kAutocast), 0);
}

TEST(FirstLayer, KeepsNothingOfItsNormWhenTheEmbeddingsAreFrozen) {
  BuildOptions options;
  options.lora = Lora{.rank = 8, .targets = {"q_proj", "v_proj"}};
  const Model model = model_of(R"({"model_type": "llama", "num_hidden_layers": 2,
    "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
    "vocab_size": 32000})",
                               options);
  const auto kept = [&](bool needs_grad) {
    TapeOptions tape;
    tape.input_needs_grad = needs_grad;
    const TapeRun run =
        run_tape(model, model.segments[1], kPure, kSizes, DType::bf16, TapeMode::keep, tape);
    return usage(run.forward, Category::activations).kept;
  };
  // The fp32 copy that the norm multiplies, its fp32 statistic, and the 16-bit product that the
  // weight of the norm multiplies: nothing there needs a gradient. The adapters still read x.
  EXPECT_LE(kept(false), kept(true) - kTokens * 512 * 4);
}

TEST(SoftmaxBackward, HoldsTheProductOfGradientAndResultBesideItsOwn) {
  Model model;
  Segment segment;
  const ValueId scores = segment.graph.chained_input({8, Scale::scores});
  segment.graph.set_output(segment.graph.map(OpKind::softmax, scores));
  const TapeRun run = run_tape(model, segment, {}, kSizes, DType::f32, TapeMode::keep);
  const std::int64_t bytes = kSizes.batch * 8 * kSizes.sequence * kSizes.sequence * 4;
  EXPECT_EQ(usage(run.backward, Category::activations).peak, 2 * bytes);
}

}  // namespace
}  // namespace shardplan
