// The lists of free blocks against a sorted set of them, which is what they stand for.
#include "simulator/free_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

namespace shardplan {
namespace {

TEST(FreeBlocks, TakesTheSmallestThatIsLargeEnoughAndOfThoseTheLowest) {
  FreeBlocks blocks;
  blocks.insert(2048, {4096, 1});
  blocks.insert(1024, {9000, 2});
  blocks.insert(1024, {8000, 3});
  EXPECT_EQ(blocks.take_best_fit(512), 3);
  EXPECT_EQ(blocks.take_best_fit(1024), 2);
  EXPECT_EQ(blocks.take_best_fit(1024), 1);
  EXPECT_EQ(blocks.take_best_fit(1), FreeBlocks::kNone);
}

/// Thousands of steps over more sizes than the shortcut to recent ones has room for.
TEST(FreeBlocks, DoesWhatASortedSetDoes) {
  FreeBlocks blocks;
  std::set<std::pair<std::int64_t, std::int64_t>> set;                            // size, address
  std::map<std::int64_t, std::pair<FreeBlocks::BlockId, FreeBlocks::ListId>> at;  // by address
  std::mt19937 random(1);
  const auto pick = [&](std::int64_t below) { return static_cast<std::int64_t>(random()) % below; };
  FreeBlocks::BlockId next = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::int64_t size = 512 * (1 + pick(step % 3 == 0 ? 700 : 20));
    const std::int64_t address = 512 * pick(5000);
    if (pick(2) == 0 && !at.contains(address)) {
      at[address] = {next, blocks.insert(size, {address, next})};
      set.emplace(size, address);
      ++next;
    } else if (pick(2) == 0 && !set.empty()) {
      const auto gone = std::next(set.begin(), pick(static_cast<std::int64_t>(set.size())));
      blocks.erase(at.at(gone->second).second, {gone->second, at.at(gone->second).first});
      at.erase(gone->second);
      set.erase(gone);
    } else {
      const auto best = set.lower_bound({size, 0});
      const FreeBlocks::BlockId expected =
          best == set.end() ? FreeBlocks::kNone : at.at(best->second).first;
      ASSERT_EQ(blocks.take_best_fit(size), expected) << step;
      if (best == set.end()) continue;
      at.erase(best->second);
      set.erase(best);
    }
  }
  std::vector<FreeBlocks::BlockId> left, expected;
  for (const auto& [size, address] : set) expected.push_back(at.at(address).first);
  blocks.for_each([&](FreeBlocks::BlockId id) { left.push_back(id); });
  EXPECT_EQ(left, expected);
  blocks.erase_if([](FreeBlocks::BlockId id) { return id % 2 == 0; });
  std::erase_if(expected, [](FreeBlocks::BlockId id) { return id % 2 == 0; });
  left.clear();
  blocks.for_each([&](FreeBlocks::BlockId id) { left.push_back(id); });
  EXPECT_EQ(left, expected);
}

}  // namespace
}  // namespace shardplan
