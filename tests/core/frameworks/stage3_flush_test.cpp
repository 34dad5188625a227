// What stage 3 makes of a bucket of gradients when it reduces them (reduce_scatter_coalesced).
#include <gtest/gtest.h>

#include "frameworks/deepspeed/stage3_plan.h"
#include "lowering/rank_model.h"
#include "support/plan_testing.h"

namespace shardplan::stage3_flush_test {
namespace {

/// Of buffers for communication, that flushing `tensors` of `elements` together makes.
std::int64_t copied(std::int64_t ranks, std::int64_t tensors, std::int64_t elements) {
  const Plan plan = zero_plan(3, "bf16-master", ranks);
  const Model model = model_of(R"({"model_type": "llama", "hidden_size": 512, "vocab_size": 1024,
      "num_attention_heads": 8, "intermediate_size": 1024, "num_hidden_layers": 2})");
  const RankModel share(model, plan);
  const Engine engine = engine_of(share.model(), plan);
  const Stage3 z(share.model(), plan, share.run(), engine);
  Program program = program_of(share.run());
  ProgramBuilder b(program);
  FlushedBucket bucket;
  bucket.elements = elements;
  bucket.tensors = tensors;
  z.flush(b, bucket);
  std::int64_t bytes = 0;
  for (const Event& e : program.events)
    if (e.kind == Event::Kind::alloc && e.category == Category::communication_buffers)
      bytes += e.bytes;
  return bytes;
}

// Also one rank concatenates the bucket (a history of SmolLM2's allocations on one H200).
TEST(Stage3Flush, CopiesTheBucket) {
  EXPECT_EQ(copied(4, 3, 4096), 2 * 4096);
  EXPECT_EQ(copied(1, 3, 4096), 2 * 4096);
}

TEST(Stage3Flush, ReducesATensorThatIsAloneInItsPlace) {
  EXPECT_EQ(copied(4, 1, 4096), 0);
  EXPECT_EQ(copied(1, 1, 4096), 0);
}

}  // namespace
}  // namespace shardplan::stage3_flush_test
