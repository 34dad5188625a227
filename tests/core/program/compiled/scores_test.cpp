// What Inductor's kernels of attention written out compute and move: the wrappers that PyTorch 2.11
// writes for GPT-Neo, and a profiled step of BLOOM
// (data/measurements/rates/h200/h200-profiled-steps.json).
#include <gtest/gtest.h>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/compiled/run.h"

namespace shardplan::scores_test {
namespace {

constexpr double kHeads = 12;

TapeRun block(const char* config, std::int64_t length) {
  const Model model = build_model(load_model_config(Json::parse(config), "config.json"), {});
  const Regime regime{.params = DType::bf16, .compute = DType::bf16};
  return run_compiled(model, model.segments[1], regime, {1, length, 0}, DType::bf16,
                      TapeMode::keep, {});
}

TapeRun bloom(std::int64_t length) {
  return block(R"({"model_type": "bloom", "hidden_size": 768, "n_layer": 1, "n_head": 12,
                   "vocab_size": 4096})",
               length);
}

TapeRun gpt_neo(std::int64_t length) {
  return block(R"({"model_type": "gpt_neo", "hidden_size": 768, "num_layers": 2, "num_heads": 12,
                   "attention_types": [[["global", "local"], 1]], "vocab_size": 4096})",
               length);
}

/// The one that goes over the most elements: over the scores.
Kernel widest(const std::vector<Kernel>& kernels) {
  Kernel most;
  for (const Kernel& kernel : kernels)
    if (kernel.kind == KernelKind::triton_reduction && kernel.elements > most.elements)
      most = kernel;
  return most;
}

double scores(std::int64_t length) {
  return kHeads * static_cast<double>(length) * static_cast<double>(length);
}

TEST(CompiledScores, RowsLongerThanABlockAreReadTwice) {
  EXPECT_EQ(widest(bloom(1024).forward_kernels).elements, scores(1024));
  EXPECT_EQ(widest(bloom(2048).forward_kernels).elements, 2.5 * scores(2048));
}

TEST(CompiledScores, BackwardTheyTakeWhatTheyMove) {
  EXPECT_EQ(widest(bloom(2048).backward_kernels).elements, scores(2048));
}

// The mask is made of positions for each score, and what is masked has a buffer.
TEST(CompiledScores, GptNeosAreMaskedByPositions) {
  const Kernel masked = widest(gpt_neo(1024).forward_kernels);
  EXPECT_EQ(masked.elements, 5 * scores(1024));
  EXPECT_GE(masked.bytes, 3 * 2 * scores(1024)) << "scores, masked scores, probabilities";
  EXPECT_LT(widest(bloom(1024).forward_kernels).bytes, 5 * scores(1024));
}

}  // namespace
}  // namespace shardplan::scores_test
