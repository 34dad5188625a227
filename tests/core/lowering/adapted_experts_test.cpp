// What a step runs where adapters are beside experts, as peft 0.21 and transformers 5.17 run it.
#include <gtest/gtest.h>

#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::adapted_experts_test {
namespace {

constexpr int kLayers = 3, kExperts = 4;

struct Counts {
  std::int64_t waits = 0;
  std::int64_t one_by_one = 0;  ///< products of an expert alone
  std::int64_t added = 0;       ///< products that are added to a weight
  std::int64_t grouped = 0;     ///< products of all experts' rows
};

Counts counts(const std::string& precision, const std::string& checkpointing = "none") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const Job job = load_job(parse_json(R"({"model": {"model_type": "mixtral", "hidden_size": 256,
          "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 4,
          "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
          "vocab_size": 4096}, "cluster": "1xH100", "precision": ")" +
                                          precision + R"(", "checkpointing": ")" + checkpointing +
                                          R"(", "workload": {"kind": "train", "method": "lora",
          "micro_batch": 1, "sequence_length": 256,
          "lora": {"rank": 8, "targets": ["all-linear"]}}})",
                                      "job.json"),
                           "job.json", context);
  const RankModel share(job.model, job.plan);
  const Program program = lower(share.model(), job.plan, share.run(), 0);
  Counts sum;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::synchronize) sum.waits += times;
    if (e.kind != Event::Kind::compute) return;
    for_each_kernel(program, e, [&](const Kernel& k) {
      if (k.kind != KernelKind::product) return;
      if (k.adds) sum.added += times * k.calls;
      if (k.batch == kExperts && k.m * kExperts == 2 * 256) sum.grouped += times * k.calls;
      if (k.batch == 1 && k.calls == kExperts) sum.one_by_one += times * k.calls;
    });
  });
  return sum;
}

// Both weights of a layer are made for the check of a parametrization, and once more to be read.
TEST(AdaptedExperts, WeightsAreMadeTwiceInEachForwardPass) {
  EXPECT_EQ(counts("bf16-pure").added, kLayers * 2 * 2);
  EXPECT_EQ(counts("bf16-pure", "full").added, 2 * kLayers * 2 * 2);
}

// PyTorch's grouped kernel takes bf16; autocast casts no expert's weight.
TEST(AdaptedExperts, AreMultipliedOneByOneWhereTheyAreNotInBf16) {
  const Counts pure = counts("bf16-pure"), autocast = counts("bf16-autocast");
  EXPECT_EQ(pure.one_by_one, 0);
  EXPECT_GE(pure.grouped, kLayers * 2 * 2);
  EXPECT_EQ(autocast.one_by_one, kLayers * 6 * kExperts);
  EXPECT_EQ(autocast.waits - pure.waits, kLayers * 6);
}

}  // namespace
}  // namespace shardplan::adapted_experts_test
