#include <gtest/gtest.h>

#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::cut_blocks_test {
namespace {

constexpr std::int64_t kTokens = 4096, kVocabulary = 65536, kLogits = kTokens * kVocabulary * 2;

/// What chance may keep reserved of a small Llama, whose logits are its largest tensor.
std::int64_t held(const std::string& fields) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const Job job = load_job(parse_json(R"({"model": {"model_type": "llama", "hidden_size": 512,
          "intermediate_size": 1024, "num_attention_heads": 4, "num_hidden_layers": 64,
          "vocab_size": 65536, "tie_word_embeddings": true}, "precision": "bf16-pure",
          "cluster": "1xH100", )" + fields +
                                          "}",
                                      "job.json"),
                           "job.json", context);
  const RankModel share(job.model, job.plan);
  return lower(share.model(), job.plan, share.run(), 0).held_at_most;
}

const std::string kSizes = R"("micro_batch": 1, "sequence_length": 4096)";
const std::string kTrain = R"("workload": {"kind": "train", )" + kSizes + "}";
const std::string kLora =
    R"("workload": {"kind": "train", "method": "lora", "lora": {"rank": 8}, )" + kSizes + "}";

// SGD and adapters have no states that fill what the first step left cached.
TEST(CutBlocks, AreHeldWhereStatesAreSmallerThanTheLargestBlock) {
  EXPECT_GE(held(R"("compile": true, "optimizer": "sgd", )" + kTrain), kLogits);
  EXPECT_GE(held(R"("compile": true, )" + kLora), kLogits);
  EXPECT_EQ(held(R"("optimizer": "sgd", )" + kTrain), 0);
}

// Those of one layer and of the table are smaller than the logits; those of all layers are not.
TEST(CutBlocks, AreNotHeldWhereTheStatesOfAllLayersFillTheCache) {
  EXPECT_EQ(held(R"("compile": true, "optimizer": "adamw", )" + kTrain), 0);
}

}  // namespace
}  // namespace shardplan::cut_blocks_test
