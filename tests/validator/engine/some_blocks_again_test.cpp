// Some blocks are done again and the others keep everything: the same training, to the bit.
#include <gtest/gtest.h>

#include <string>

#include "validator/engine_testing.h"

namespace shardplan::validator::some_blocks_again_test {
namespace {

using namespace testing;

TestRun run_of(int stage, int world) {
  TestRun run{.micro_batch = 2, .sequence = 6, .world = world};
  run.options.stage = stage;
  run.options.accumulation = 2;
  run.options.optimizer.largest_norm = 1;
  run.options.schedule = ConstantLr{3e-3};
  return run;
}

CheckpointedBlocks first(std::int64_t count) {
  return {{.count = count}};
}
CheckpointedBlocks each(std::int64_t every) {
  return {{.every = every}};
}

class SomeBlocksAgain : public ::testing::TestWithParam<int> {};

TEST_P(SomeBlocksAgain, give_the_losses_of_none_to_the_bit) {
  for (DecoderSpec spec : {tiny_gpt2(), tiny_qwen3(), tiny_mixtral()}) {
    spec.layers = 4;
    TestRun run = run_of(GetParam(), 2);
    const auto none = train(spec, run, 10);
    EXPECT_LT(none.back().loss, none.front().loss);
    for (const CheckpointedBlocks& which : {first(1), first(3), first(4), each(2), each(3)}) {
      run.again = which;
      const auto some = train(spec, run, 10);
      ASSERT_EQ(some.size(), none.size());
      for (std::size_t i = 0; i < none.size(); ++i)
        EXPECT_EQ(some[i].loss, none[i].loss)
            << spec.family << ", first " << which.share.count << ", each " << which.share.every;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, SomeBlocksAgain, ::testing::Values(0, 1, 2, 3));

class SomeBlocksAgainOfStages : public ::testing::TestWithParam<int> {};

TEST_P(SomeBlocksAgainOfStages, give_the_losses_of_none_to_the_bit) {
  for (const PipelineSchedule order : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (const int stages : {2, 4}) {
      DecoderSpec spec = tiny_llama();
      spec.layers = 4;
      TestRun run = run_of(GetParam(), 4);
      run.options.accumulation = 4;
      run.options.pipeline = {.stages = stages, .chunks = 1, .order = order};
      const auto none = train(spec, run, 5);
      for (const CheckpointedBlocks& which : {first(1), first(3), each(2)}) {
        run.again = which;
        const auto some = train(spec, run, 5);
        ASSERT_EQ(some.size(), none.size());
        for (std::size_t i = 0; i < none.size(); ++i)
          EXPECT_EQ(some[i].loss, none[i].loss)
              << stages << " stages, first " << which.share.count << ", each " << which.share.every;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Zero, SomeBlocksAgainOfStages, ::testing::Values(0, 1));

}  // namespace
}  // namespace shardplan::validator::some_blocks_again_test
