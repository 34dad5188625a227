// One rank of several that has less memory than the others: who says what, and who ends.
#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "kernels/host/host_backend.h"
#include "launch/run.h"
#include "load/hardware.h"
#include "memory/arena.h"

namespace shardplan::validator::out_of_memory_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRanks = 4;
constexpr std::int64_t kLittle = 1'500'000;

/// Would run for hours.
EngineJob job_of(int stage) {
  Json job =
      read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json");
  job["framework"]["zero_stage"] = stage;
  job["run"]["steps"] = 1000000;
  static const HardwareCatalog kHardware = load_hardware_catalog();
  return load_engine_job(job, "test.json", kHardware);
}

/// Ranks of which `poor` has `bytes` of memory, as a GPU has.
MakeRank ranks_with(int poor, std::int64_t bytes) {
  return [make = host_ranks(kRanks, 0), poor, bytes](int rank) {
    RankDevice device = make(rank);
    if (rank == poor) device.backend = make_host_backend(bytes);
    return device;
  };
}

std::string failure_of(const EngineJob& job, MakeRank make) {
  try {
    run_job(job,
            {.count = kRanks,
             .world = kRanks,
             .make = std::move(make),
             .workspace = [](const StepShapes&) { return std::int64_t{0}; },
             .host_ranks = kRanks},
            {});
  } catch (const OutOfMemory& error) {
    return error.what();
  }
  return "no rank was out of memory";
}

class RankOutOfMemory : public ::testing::TestWithParam<int> {};

TEST_P(RankOutOfMemory, is_named_with_what_it_wanted_and_the_others_end) {
  const EngineJob job = job_of(GetParam());
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = failure_of(job, ranks_with(2, kLittle));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_THAT(text, StartsWith("rank 2: out of memory: no room for "));
  EXPECT_THAT(text, HasSubstr(" of 1.43 MiB are left\n"));
}

INSTANTIATE_TEST_SUITE_P(Zero, RankOutOfMemory, ::testing::Values(0, 1, 2, 3));

/// Its device has enough, of which something else has taken most.
class Robbed final {
 public:
  explicit Robbed(int rank) : rank_(rank) {}
  RankDevice operator()(int rank) {
    RankDevice device = make_(rank);
    if (rank == rank_) {
      device.backend = make_host_backend(kLittle * 1000);
      device.backend->allocate(kLittle * 1000 - kLittle);
    }
    return device;
  }

 private:
  MakeRank make_ = host_ranks(kRanks, 0);
  int rank_;
};

TEST(RankOutOfMemory, is_named_where_others_have_taken_its_memory) {
  EXPECT_THAT(failure_of(job_of(1), Robbed(3)), StartsWith("rank 3: out of memory: no room for "));
}

}  // namespace
}  // namespace shardplan::validator::out_of_memory_test
