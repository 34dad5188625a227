#include "questions/workers.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "questions/prompt_thread.h"

namespace shardplan {
namespace {

cpu_set_t processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  return allowed;
}

TEST(Workers, DoesEachIndexOnce) {
  for (const unsigned threads : {0U, 1U, 3U, 64U}) {
    std::vector<std::atomic<int>> done(100);
    for_each_index(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    EXPECT_TRUE(std::ranges::all_of(done, [](const auto& times) { return times == 1; }));
  }
}

TEST(Workers, DoesNothingOfNothing) {
  for_each_index(0, 4, [](std::size_t) { FAIL(); });
}

TEST(Workers, ThrowsTheFirstFailureAgain) {
  try {
    for_each_index(50, 4, [](std::size_t i) {
      if (i % 20 == 7) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "no failure";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "7");
  }
}

// It begins on another processor than its maker, and is free to leave it.
TEST(PromptThread, MayRunWhereItsMakerMay) {
  const cpu_set_t own = processors();
  for (const std::size_t place : {0U, 1U, 7U, 5000U}) {
    cpu_set_t seen;
    {
      const PromptThread thread([&] { seen = processors(); }, place);
    }
    EXPECT_TRUE(CPU_EQUAL(&own, &seen));
  }
}

TEST(PromptThread, IsWaitedForOnceWhenItMoves) {
  std::atomic<int> done = 0;
  {
    std::vector<PromptThread> threads;
    for (std::size_t i = 0; i < 20; ++i) threads.emplace_back([&] { ++done; }, i);
  }
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace shardplan
