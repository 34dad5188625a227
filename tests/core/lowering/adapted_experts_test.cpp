// What a step starts for experts whose weights peft adapts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::adapted_experts_test {
namespace {

struct Counts {
  std::int64_t waits = 0;  ///< of the host
  std::int64_t sums = 0;   ///< products that are added to weights
  std::int64_t alone = 0;  ///< products of one expert
  std::int64_t lean = 0;   ///< products of all experts with a result as narrow as the rank
};

/// A step of a block of Qwen3 with four experts.
Counts counts(const std::string& precision, const std::string& adapted) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const std::string text = R"({"model": {"model_type": "qwen3_moe", "hidden_size": 256,
      "moe_intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
      "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2, "vocab_size": 1024,
      "intermediate_size": 512},
      "cluster": "1xH100", "precision": ")" +
                           precision + R"(", "workload": {"kind": "train", "method": "lora",
      "micro_batch": 1, "sequence_length": 256, "lora": {"rank": 8, "targets": ["q_proj"]
      )" + adapted + "}}}";
  const Job job = load_job(parse_json(text, "job.json"), "job.json", context);
  const RankModel share(job.model, job.plan);
  const Program program = lower(share.model(), job.plan, share.run(), 0);
  Counts sum;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::synchronize) sum.waits += times;
    if (e.kind != Event::Kind::compute) return;
    for_each_kernel(program, e, [&](const Kernel& k) {
      if (k.kind != KernelKind::product) return;
      if (k.adds) sum.sums += times * k.calls;
      if (k.issue == Issue::inner && k.calls == 4) sum.alone += times * k.calls;
      if (k.batch == 4 && std::min(k.m, k.n) <= 16) sum.lean += times * k.calls;
    });
  });
  return sum;
}

const std::string kBoth = R"(, "target_parameters": ["experts.gate_up_proj", "experts.down_proj"])";

// Each of the two weights is made twice, as the parametrization is tried where it is registered.
TEST(AdaptedExperts, AreAddedToAllWeightsTwiceAPass) {
  EXPECT_EQ(counts("bf16-pure", kBoth).sums, 2 * 2);
  EXPECT_EQ(counts("bf16-pure", "").sums, 0);
}

// What is added is as large as the weight; the gradients of its two factors are as narrow as they.
TEST(AdaptedExperts, HaveGradientsOfNarrowFactors) {
  EXPECT_EQ(counts("bf16-pure", kBoth).lean, 2 * 2);
  EXPECT_EQ(counts("bf16-pure", "").lean, 0);
}

// Autocast leaves fp32 weights as they are, which PyTorch's grouped kernel does not take: a product
// forward and two backward, as the adapted weight has a gradient; of frozen weights one.
TEST(AdaptedExperts, AreMultipliedOneByOneUnderAutocast) {
  const Counts adapted = counts("bf16-autocast", kBoth), frozen = counts("bf16-autocast", "");
  EXPECT_EQ(adapted.waits, 2 * 3);
  EXPECT_EQ(adapted.alone, 2 * 3 * 4);
  EXPECT_EQ(frozen.waits, 2 * 2);
  EXPECT_EQ(frozen.alone, 2 * 2 * 4);
  EXPECT_EQ(counts("bf16-pure", kBoth).waits, 0);
}

}  // namespace
}  // namespace shardplan::adapted_experts_test
