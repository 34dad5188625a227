// Liger's kernels: which networks they are put into, and what they keep, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "estimate/calibration.h"
#include "estimate/estimate.h"
#include "json/document.h"
#include "kernels/registry.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/rank_model.h"
#include "support/error_of.h"
#include "support/plan_testing.h"

namespace shardplan::liger_test {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kLlama = R"({"model_type": "llama", "hidden_size": 1024,
  "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4,
  "intermediate_size": 2816, "vocab_size": 32000, "tie_word_embeddings": false})";

Job job(const std::string& model_type, const std::string& more) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const std::string text = R"({"model": {"model_type": ")" + model_type +
                           R"("}, "cluster": "1xH100", "precision": "bf16-pure", )" + more + "}";
  return load_job(parse_json(text, "job.json"), "job.json", context);
}

std::string refusal(const std::string& model_type, const std::string& more) {
  return error_text([&] { job(model_type, more); });
}

TEST(Liger, RefusesATypeThatItDoesNotPatch) {
  const std::string error = refusal("gpt2", R"("kernels": "liger")");
  EXPECT_THAT(error, HasSubstr("kernels"));
  EXPECT_THAT(error, HasSubstr("Liger-Kernel 0.8.5 has no kernels for model type gpt2"));
  EXPECT_THAT(error, HasSubstr("llama"));
}

TEST(Liger, RefusesAKernelThatATypeDoesNotTake) {
  EXPECT_THAT(refusal("llama", R"("kernels": ["geglu"])"),
              HasSubstr("no geglu for model type llama"));
  EXPECT_THAT(refusal("glm4", R"("kernels": ["rope"])"), HasSubstr("no rope"));
  EXPECT_THAT(refusal("mistral", R"("kernels": ["cross_entropy"])"), HasSubstr("has no effect"));
  EXPECT_THAT(refusal("granite", R"("kernels": ["fused_linear_cross_entropy"])"),
              HasSubstr("fused_linear_cross_entropy is not implemented for model type granite"));
  EXPECT_THAT(refusal("mixtral", R"("kernels": "liger")"), HasSubstr("experts"));
}

TEST(Liger, RefusesBothLosses) {
  EXPECT_THAT(refusal("llama", R"("kernels": ["cross_entropy", "fused_linear_cross_entropy"])"),
              HasSubstr("cannot both be on"));
}

TEST(Liger, SaysTheNearestNameOfAKernel) {
  EXPECT_THAT(refusal("llama", R"("kernels": ["rms_nrom"])"), HasSubstr("rms_norm"));
}

TEST(Liger, IsForTransformersClassesAndForTraining) {
  EXPECT_THAT(refusal("llama", R"("kernels": "liger", "framework": "megatron")"),
              HasSubstr("has its own"));
  EXPECT_THAT(refusal("llama", R"("kernels": "liger", "workload": {"kind": "inference"})"),
              HasSubstr("training"));
}

/// What a block of the network keeps for each token after its forward pass, beside its input.
std::int64_t kept_per_token(std::uint32_t names, bool patches) {
  BuildOptions options;
  options.requested = {patches, names};
  const Model model = model_of(kLlama, options);
  constexpr std::int64_t kTokens = 4096;
  const TapeRun run = run_tape(model, model.segments[1], {DType::bf16, DType::bf16},
                               {.batch = 2, .sequence = kTokens / 2}, DType::bf16, TapeMode::keep);
  std::int64_t kept = 0;
  for (const TapeEvent& e : run.forward) {
    if (e.kind == TapeEvent::Kind::alloc) kept += e.bytes;
    if (e.kind == TapeEvent::Kind::free) kept -= e.bytes;
  }
  return kept / kTokens;
}

// h 1024, f 2816, queries 16 · 64 = 1024 wide, keys and values 4 · 64 = 256.
TEST(Liger, KeepsOfALlamaBlockWhatItsKernelsSave) {
  // The middle of the block and its output; two norms' outputs and 4 bytes of statistics each; q, k
  // and v, the attention's output and 4 bytes a head; gate, up and their product.
  const std::int64_t expected =
      2 * 2 * 1024 + 2 * (2 * 1024 + 4) + 2 * (1024 + 2 * 256) + 2 * 1024 + 4 * 16 + 3 * 2 * 2816;
  EXPECT_EQ(kept_per_token(0, true), expected);
}

TEST(Liger, EachKernelKeepsLess) {
  const std::int64_t plain = kept_per_token(0, false);
  // Two norms: x in fp32 (4h) and the normal (2h); in their place x itself is kept (2h).
  EXPECT_EQ(plain - kept_per_token(bit_of(KernelName::rms_norm), false), 2 * (4 + 2 - 2) * 1024);
  // SiLU's result.
  EXPECT_EQ(plain - kept_per_token(bit_of(KernelName::swiglu), false), 2 * 2816);
  // Queries and keys are turned where they are, as many bytes as turned ones.
  EXPECT_EQ(plain, kept_per_token(bit_of(KernelName::rope), false));
}

/// How often the host waits for the GPU in the segment with the loss: in the forward pass, in the
/// backward pass.
std::pair<std::ptrdiff_t, std::ptrdiff_t> waits_of_loss(std::uint32_t names) {
  BuildOptions options;
  options.requested = {false, names};
  const Model model = model_of(kLlama, options);
  const TapeRun run = run_tape(model, model.segments.back(), {DType::bf16, DType::bf16},
                               {.batch = 2, .sequence = 64}, DType::bf16, TapeMode::keep);
  const auto waits = [](const std::vector<TapeEvent>& events) {
    return std::count_if(events.begin(), events.end(),
                         [](const TapeEvent& e) { return e.kind == TapeEvent::Kind::host_waits; });
  };
  return {waits(run.forward), waits(run.backward)};
}

TEST(Liger, ItsLossesHaveTheHostReadTheLabelsAndTheGradient) {
  const std::pair<std::ptrdiff_t, std::ptrdiff_t> once{1, 1}, never{0, 0};
  EXPECT_EQ(waits_of_loss(bit_of(KernelName::fused_linear_cross_entropy)), once);
  EXPECT_EQ(waits_of_loss(bit_of(KernelName::cross_entropy)), once);
  EXPECT_EQ(waits_of_loss(bit_of(KernelName::rms_norm)), never);
}

std::int64_t phase_peak(const KernelRequest& kernels, LossKind loss, Phase phase) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = 4;
  plan.workload.sequence_length = 1024;
  plan.kernels = kernels;
  plan.loss = loss;
  const Model model = model_of(kLlama, build_options(plan));
  const Estimate e = estimate(model, plan, Calibration{});
  return e.phases[static_cast<std::size_t>(phase)].peak;
}

TEST(FusedLoss, IsTheSameAsTheJobsOwnField) {
  const KernelRequest listed{false, bit_of(KernelName::fused_linear_cross_entropy)};
  EXPECT_EQ(phase_peak(listed, LossKind::cross_entropy, Phase::forward),
            phase_peak({}, LossKind::fused_linear, Phase::forward));
}

}  // namespace
}  // namespace shardplan::liger_test
