// Blocks that another stream than their pool's works on: they are free when that stream has come to
// where it was.
#include <gtest/gtest.h>

#include "base/units.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "simulator/reserved.h"
#include "timing/clocks.h"

namespace shardplan::streams_test {
namespace {

constexpr std::int64_t kBlock = 32 * kMiB;

/// Layers that take a buffer, compute, and let it go while the kernels still run.
Program layers(std::int64_t count, Stream user, std::int64_t most_ahead) {
  Program program;
  ProgramBuilder b(program);
  const std::int32_t kernel = b.add_kernels({Kernel{.calls = 1}});
  b.begin_phase(Phase::forward);
  b.begin_repeat(count);
  if (most_ahead > 0) b.throttle(0, most_ahead, false);
  b.alloc(Category::gathered_parameters, kBlock, Stream::copy);
  b.compute(kernel, 1);
  b.free_used_on(user, Category::gathered_parameters, kBlock, Stream::copy);
  b.mark(Stream::compute, 0);
  b.end_repeat();
  b.end_phase(Phase::forward);
  return program;
}

TEST(UsedOnAStream, BlocksOfTheirOwnStreamAreFreeAtOnce) {
  EXPECT_EQ(simulate_reserved(layers(5, Stream::copy, 0)).reserved, kBlock);
}

TEST(UsedOnAStream, BlocksWaitWhileTheHostIsAhead) {
  const ReservedProfile profile = simulate_reserved(layers(5, Stream::compute, 0));
  EXPECT_EQ(profile.reserved, 5 * kBlock);
  EXPECT_EQ(profile.allocated, kBlock);  // what was freed does not count
}

TEST(UsedOnAStream, AMarkHoldsTheHostBack) {
  EXPECT_EQ(simulate_reserved(layers(5, Stream::compute, 1)).reserved, kBlock);
  EXPECT_EQ(simulate_reserved(layers(5, Stream::compute, 2)).reserved, 2 * kBlock);
  EXPECT_EQ(simulate_reserved(layers(5, Stream::compute, 4)).reserved, 4 * kBlock);
}

TEST(UsedOnAStream, BlocksComeBackAsFastAsTheStreamDoes) {
  const Program program = layers(6, Stream::compute, 0);
  const auto reserved = [&](double issue, double busy) {
    Pace pace = host_ahead(program);
    for (ClockMove& move : pace.moves)
      if (move.kind == Event::Kind::compute)
        move.sequence = {.issue = issue, .busy = busy, .chain = issue + busy};
    return simulate_reserved(program, {}, &pace).reserved;
  };
  EXPECT_EQ(reserved(1, 0.25), 2 * kBlock);  // a kernel is done before the next but one is issued
  EXPECT_EQ(reserved(1, 1.5), 4 * kBlock);   // behind by half a kernel more each time
  EXPECT_EQ(reserved(0.1, 10), 6 * kBlock);
}

TEST(UsedOnAStream, TheHostWaitsForThemBeforeMemoryRunsOut) {
  const ReservedProfile tight =
      simulate_reserved(layers(5, Stream::compute, 0), {.limit = 2 * kBlock});
  EXPECT_FALSE(tight.out_of_memory);
  EXPECT_EQ(tight.reserved, 2 * kBlock);
  EXPECT_GT(tight.retries, 0);
}

TEST(UsedOnAStream, Fsdp1HoldsMoreGathersWhereNothingLimitsThem) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const auto reserved = [&](bool limits) {
    const Json json{{"model", "llama-3.2-1b"},
                    {"cluster", "8xH100"},
                    {"framework", {{"name", "fsdp1"}, {"limit_all_gathers", limits}}},
                    {"workload", {{"micro_batch", 1}, {"sequence_length", 4096}}}};
    const Job job = load_job(json, "job.json", {.hardware = &hardware});
    return simulate_reserved(lower(job.model, job.plan, run_segments(job.model, job.plan), 0))
        .reserved;
  };
  EXPECT_GT(reserved(false), reserved(true) + 500 * kMiB);
}

}  // namespace
}  // namespace shardplan::streams_test
