#include "memory/arena.h"

#include <gmock/gmock.h>

namespace shardplan::validator {
namespace {

using ::testing::HasSubstr;

TEST(Arena, rounds_each_tensor_up_to_its_alignment) {
  Arena arena(0, 1 << 20);
  arena.allocate("a", Category::parameters, DType::bf16, {3});
  EXPECT_EQ(arena.live_bytes(), 512);
  EXPECT_EQ(arena.allocate("b", Category::parameters, DType::f32, {129}).address, 512U);
  EXPECT_EQ(arena.live_bytes(), 512 + 1024);
}

TEST(Arena, gives_the_same_addresses_after_a_scope_has_ended) {
  Arena arena(4096, 1 << 20);
  arena.allocate("kept", Category::parameters, DType::f32, {1});
  std::uintptr_t first = 0;
  {
    const Arena::Scope scope(arena);
    first = arena.allocate("x", Category::activations, DType::f32, {100}).address;
  }
  const Arena::Scope scope(arena);
  EXPECT_EQ(arena.allocate("y", Category::workspace, DType::f32, {1}).address, first);
}

TEST(Arena, tells_phases_apart_and_what_the_peak_was_made_of) {
  Arena arena(0, 1 << 20);
  arena.begin_phase(Phase::model);
  arena.allocate("w", Category::parameters, DType::f32, {128});
  arena.end_phase();
  {
    const Arena::Scope step(arena);
    arena.begin_phase(Phase::forward);
    arena.allocate("x", Category::activations, DType::f32, {128});
    {
      const Arena::Scope logits(arena);
      arena.allocate("l", Category::logits_and_loss, DType::f32, {256});
    }
    arena.end_phase();
    arena.begin_phase(Phase::backward);
  }
  arena.end_phase();
  const MemoryProfile& profile = arena.profile();
  EXPECT_EQ(profile.of(Phase::model).end, 512);
  EXPECT_EQ(profile.of(Phase::forward).peak, 2048);
  EXPECT_EQ(profile.of(Phase::forward).end, 1024);
  EXPECT_EQ(profile.of(Phase::forward).at_peak[index_of(Category::logits_and_loss)], 1024);
  EXPECT_EQ(profile.of(Phase::backward).peak, 1024);
  EXPECT_EQ(profile.of(Phase::backward).end, 512);
  EXPECT_EQ(profile.peak_phase(), Phase::forward);
  EXPECT_EQ(profile.resident[index_of(Category::parameters)], 512);
}

TEST(Arena, names_the_tensor_and_lists_what_is_alive_when_memory_runs_out) {
  Arena arena(0, 4096);
  for (int i = 0; i < 3; ++i)
    arena.allocate("blocks." + std::to_string(i) + ".qkv", Category::activations, DType::bf16,
                   {8, 32});
  arena.allocate("w1.weight", Category::parameters, DType::f32, {4, 64});
  try {
    arena.allocate("logits", Category::logits_and_loss, DType::bf16, {16, 128});
    FAIL() << "4 KiB cannot hold this";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("no room for logits (bf16 [16, 128], 4.00 KiB"));
    EXPECT_THAT(error.what(), HasSubstr("blocks.*.qkv × 3"));
    EXPECT_THAT(error.what(), HasSubstr("w1.weight\n"));
  }
}

}  // namespace
}  // namespace shardplan::validator
