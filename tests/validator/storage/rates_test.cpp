#include "storage/rates.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/subprocess.h"

namespace shardplan::validator::rates_test {
namespace {

TEST(StorageRates, has_a_row_for_each_size_and_depth_and_leaves_nothing) {
  const TemporaryFolder folder;
  std::size_t told = 0;
  const StorageRates rates = measure_storage({.folder = folder.path(""),
                                              .bytes = std::int64_t{256} << 20,
                                              .seconds = 0.01,
                                              .chunk_bytes = {1 << 18, 1 << 20},
                                              .queue_depths = {2, 8}},
                                             [&](const StorageRate&) { ++told; });
  EXPECT_EQ(rates.rates.size(), 4 * (3 - rates.absent.size()));
  EXPECT_EQ(told, rates.rates.size());
  for (const StorageRate& r : rates.rates) {
    EXPECT_GT(r.read, 1e6) << r.how;
    EXPECT_GT(r.write, 1e6) << r.how;
    EXPECT_GT(r.both, 1e6) << r.how;
    EXPECT_LE(r.both, rates.best().both);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

TEST(StorageRates, of_the_path_that_a_run_takes_are_of_that_one_alone) {
  const TemporaryFolder folder;
  StorageRatesOptions options{.folder = folder.path(""),
                              .bytes = std::int64_t{256} << 20,
                              .seconds = 0.01,
                              .chunk_bytes = {1 << 20},
                              .queue_depths = {2},
                              .only = IoPath::automatic};
  const StorageRates rates = measure_storage(options, [](const StorageRate&) {});
  ASSERT_EQ(rates.rates.size(), 1U);
  EXPECT_EQ(rates.rates[0].how, rates.absent.empty() ? "io_uring" : "threads");
}

TEST(StorageRate, of_both_at_once_lowers_what_is_promised_only_where_it_is_slower) {
  StorageRate r{.read = 6e9, .write = 3e9, .both = 2e9};
  EXPECT_DOUBLE_EQ(r.one_after_the_other(), 4e9);
  EXPECT_DOUBLE_EQ(r.share_of_both(), 0.5);
  r.both = 5e9;
  EXPECT_DOUBLE_EQ(r.share_of_both(), 1);
}

TEST(StorageRates, usual_row_is_that_of_a_runs_own_requests_and_not_the_fastest) {
  const StorageOptions of_a_run;
  const auto row = [](std::string how, std::int64_t chunk, int depth, double both) {
    return StorageRate{
        .how = std::move(how), .chunk_bytes = chunk, .queue_depth = depth, .both = both};
  };
  StorageRates rates;
  rates.rates = {row("io_uring", 4096, 4, 9),
                 row("io_uring", of_a_run.chunk_bytes, of_a_run.queue_depth, 2),
                 row("threads", of_a_run.chunk_bytes, of_a_run.queue_depth, 3)};
  EXPECT_EQ(rates.best().both, 9);
  EXPECT_EQ(rates.usual().both, 2);
  rates.rates.resize(1);  // it was not timed
  EXPECT_EQ(rates.usual().both, 9);
}

}  // namespace
}  // namespace shardplan::validator::rates_test
