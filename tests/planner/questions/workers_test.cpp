#include "questions/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardplan {
namespace {

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

}  // namespace
}  // namespace shardplan
