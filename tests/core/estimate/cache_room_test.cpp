// Blocks of a paged cache and tokens of prompts where several completions share a prompt, counted
// by hand.
#include "serving/cache_room.h"

#include <gtest/gtest.h>

#include "rollout/engine.h"

namespace shardplan::cache_room_test {
namespace {

Workload work(std::int64_t prompt, std::int64_t answer) {
  Workload w;
  w.sequence_length = prompt;
  w.generation.new_tokens = answer;
  return w;
}

RolloutEngine engine_of(std::int64_t completions, const EngineDescription& which = kVllm) {
  RolloutEngine engine;
  engine.engine = &which;
  engine.block_tokens = which.block_tokens;
  engine.completions = completions;
  return engine;
}

/// 100 tokens: six full blocks of 16 and 4 tokens of a seventh; with 60 answered ten blocks, of
/// which the last four are each completion's own.
TEST(CacheRoom, HasFullBlocksOfAPromptOnce) {
  const CacheRoom room(engine_of(8), work(100, 60));
  EXPECT_EQ(room.blocks_of(1), 10);
  EXPECT_EQ(room.blocks_of(8), 6 + 8 * 4);
  EXPECT_EQ(room.blocks_of(16), 2 * (6 + 8 * 4));
  EXPECT_EQ(room.blocks_of(9), 38 + 10);
}

TEST(CacheRoom, CountsSequencesOfGroupsThatAreNotWhole) {
  const CacheRoom room(engine_of(8), work(100, 60));
  EXPECT_EQ(room.sequences_in(38), 8);
  EXPECT_EQ(room.sequences_in(37), 7);
  EXPECT_EQ(room.sequences_in(38 + 9), 8);
  EXPECT_EQ(room.sequences_in(38 + 10), 9);
  EXPECT_EQ(room.sequences_in(5), 0);
  for (std::int64_t blocks = 0; blocks < 200; ++blocks) {
    const std::int64_t n = room.sequences_in(blocks);
    EXPECT_LE(n == 0 ? 0 : room.blocks_of(n), blocks);
    EXPECT_GT(room.blocks_of(n + 1), blocks);
  }
}

/// The first completion computes 100 tokens, the others the 4 behind the six blocks.
TEST(CacheRoom, ComputesAPromptOnce) {
  const CacheRoom room(engine_of(8), work(100, 60));
  EXPECT_EQ(room.prompt_tokens(8), 100 + 7 * 4);
  EXPECT_EQ(room.prompt_tokens(9), 2 * 100 + 7 * 4);
}

/// Of a prompt that ends with a block, the last block is computed again for the logits.
TEST(CacheRoom, ComputesTheLastBlockOfEachCompletion) {
  const CacheRoom room(engine_of(4), work(96, 32));
  EXPECT_EQ(room.blocks_of(4), 5 + 4 * 3);
  EXPECT_EQ(room.prompt_tokens(4), 96 + 3 * 16);
}

/// SGLang's pages are one token; completions that come into the same pass compute all of it.
TEST(CacheRoom, ComputesAllThatComesIntoOnePass) {
  RolloutEngine engine = engine_of(8, kSglang);
  engine.batched_tokens = 350;
  const CacheRoom room(engine, work(100, 60));
  EXPECT_EQ(room.blocks_of(8), 99 + 8 * 61);
  EXPECT_EQ(room.prompt_tokens(8), 3 * 100 + 5 * 1);
}

TEST(CacheRoom, SharesNothingWithoutACache) {
  RolloutEngine engine = engine_of(8);
  engine.prefix_caching = false;
  const CacheRoom room(engine, work(100, 60));
  EXPECT_EQ(room.blocks_of(8), 80);
  EXPECT_EQ(room.sequences_in(80), 8);
  EXPECT_EQ(room.prompt_tokens(8), 800);
}

}  // namespace
}  // namespace shardplan::cache_room_test
