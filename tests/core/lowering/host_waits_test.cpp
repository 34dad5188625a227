// Where a step's host waits for its GPU, and what it calls one by one.
#include <gtest/gtest.h>

#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::host_waits_test {
namespace {

struct Counts {
  std::int64_t waits = 0;      ///< of a step
  std::int64_t attention = 0;  ///< calls of a step's forward passes, those made again too
};

/// A step of `model` over one sample with images of 64 tokens, none where there are no `images`.
Counts counts(const std::string& model, int images, const std::string& checkpointing = "none") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const std::string of_images =
      images > 0 ? R"(, "image_tokens": 64, "images": )" + std::to_string(images) : "";
  const Job job = load_job(
      parse_json(R"({"model": )" + model + R"(, "cluster": "1xH100", "precision": "bf16-pure",
                     "checkpointing": ")" +
                     checkpointing + R"(", "workload": {"kind": "train",
                     "micro_batch": 1, "sequence_length": 256)" +
                     of_images + "}}",
                 "job.json"),
      "job.json", context);
  const RankModel share(job.model, job.plan);
  const Program program = lower(share.model(), job.plan, share.run(), 0);
  Counts sum;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::synchronize) sum.waits += times;
    if (e.kind != Event::Kind::compute) return;
    for_each_kernel(program, e, [&](const Kernel& k) {
      if (k.kind == KernelKind::attention) sum.attention += times * k.calls;
    });
  });
  return sum;
}

/// Three layers of text; of a tower's four, the third sees whole images, the others windows.
std::string qwen(const std::string& version, const std::string& tower) {
  return R"({"model_type": ")" + version + R"(", "tie_word_embeddings": false,
             "text_config": {"model_type": ")" +
         version + R"(_text", "hidden_size": 512,
             "intermediate_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 3,
             "num_key_value_heads": 8, "vocab_size": 4096,
             "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0,
             "mrope_section": [8, 12, 12]}}, "vision_config": {"depth": 4, "num_heads": 4,
             "patch_size": 14, )" +
         tower + "}}";
}
const std::string kImages =
    qwen("qwen2_vl", R"("embed_dim": 256, "hidden_size": 512, "mlp_ratio": 4)");
const std::string kWindows =
    qwen("qwen2_5_vl", R"("hidden_size": 256, "intermediate_size": 512, "out_hidden_size": 512,
                          "window_size": 112, "fullatt_block_indexes": [2])");

// Each layer of the tower reads how long its pieces are; what puts rows among the tokens has two
// masks read, one in each pass.
TEST(HostWaits, ForTheLengthsOfPiecesAndForMasks) {
  EXPECT_EQ(counts(kImages, 1).waits, 4 + 2);
  EXPECT_EQ(counts(kImages, 3).waits, 4 + 2);
  EXPECT_EQ(counts(kImages, 1, "full").waits, 2 * 4 + 2);
  EXPECT_EQ(counts(kWindows, 1).waits, 4 + 2);
  EXPECT_EQ(counts(R"("llama-3.2-1b")", 0).waits, 0);
}

// 64 tokens are 256 patches, four windows of 64.
TEST(HostWaits, EachImageAndEachWindowIsACall) {
  EXPECT_EQ(counts(kImages, 1).attention, 3 + 4);
  EXPECT_EQ(counts(kImages, 3).attention, 3 + 4 * 3);
  EXPECT_EQ(counts(kWindows, 1).attention, 3 + 1 + 3 * 4);
  EXPECT_EQ(counts(kWindows, 2).attention, 3 + 2 + 3 * 8);
}

}  // namespace
}  // namespace shardplan::host_waits_test
