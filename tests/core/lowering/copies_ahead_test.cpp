#include <gtest/gtest.h>

#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::copies_ahead_test {
namespace {

// Linear weights of sixteen blocks, in 16 bits: attention 4 x 1024 x 1024, MLP 3 x 1024 x 4096.
constexpr std::int64_t kCopies = 16 * (4 * 1024 * 1024 + 3 * 1024 * 4096) * 2LL;

/// What chance may keep reserved of a compiled Llama with AdamW, every block checkpointed.
std::int64_t held(const std::string& tied, const std::string& precision, int batch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const std::string text = R"({"model": {"model_type": "llama", "hidden_size": 1024,
      "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 16,
      "vocab_size": 32768, "tie_word_embeddings": )" +
                           tied + R"(}, "precision": ")" + precision +
                           R"(", "cluster": "1xH100", "compile": true, "checkpointing": "full",
      "workload": {"kind": "train", "sequence_length": 1024, "micro_batch": )" +
                           std::to_string(batch) + "}}";
  const Job job = load_job(parse_json(text, "job.json"), "job.json", context);
  const RankModel share(job.model, job.plan);
  return lower(share.model(), job.plan, share.run(), 0).held_at_most;
}

TEST(CopiesAhead, AreHeldWhereATiedHeadsTableIsThePeak) {
  EXPECT_EQ(held("true", "bf16-autocast", 1), kCopies);
}

TEST(CopiesAhead, AreNotHeldWhereInductorKeepsTheOrder) {
  EXPECT_EQ(held("false", "bf16-autocast", 1), 0);  // a head of its own
  EXPECT_EQ(held("true", "bf16-pure", 1), 0);       // nothing is copied
  EXPECT_EQ(held("true", "bf16-autocast", 16), 0);  // activations are most of the memory
}

}  // namespace
}  // namespace shardplan::copies_ahead_test
