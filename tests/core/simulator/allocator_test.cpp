// The caching allocator against sequences worked out by hand from its rules
// (docs/explanation/allocator.md), and what it holds of whole programs against measured training
// steps.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

#include "base/units.h"
#include "json/reader.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "simulator/caching_allocator.h"
#include "simulator/reserved.h"

namespace shardplan {
namespace {

using Block = CachingAllocator::BlockId;

CachingAllocator plain() {
  return CachingAllocator(AllocatorOptions{});
}

TEST(CachingAllocator, RoundsRequestsTo512Bytes) {
  EXPECT_EQ(CachingAllocator::block_size(1), 512);
  EXPECT_EQ(CachingAllocator::block_size(512), 512);
  EXPECT_EQ(CachingAllocator::block_size(513), 1024);
}

/// An engine's weights and cache: the driver has them back when they are free, whatever else is
/// cached; of a segment that several share when the last one goes.
TEST(CachingAllocator, KeepsNothingOfAnEngineThatSleeps) {
  for (const bool expandable : {false, true}) {
    CachingAllocator allocator(AllocatorOptions{.expandable_segments = expandable});
    allocator.free(allocator.allocate(30 * kMiB));
    const std::int64_t cached = allocator.reserved();
    EXPECT_GE(cached, 30 * kMiB);
    const Block cache = allocator.allocate(50 * kMiB, Stream::engine);
    const Block one = allocator.allocate(2 * kMiB, Stream::engine);
    const Block other = allocator.allocate(2 * kMiB, Stream::engine);
    EXPECT_EQ(allocator.reserved(), cached + 70 * kMiB);
    allocator.free(cache);
    EXPECT_EQ(allocator.reserved(), cached + 20 * kMiB);
    allocator.free(one);
    EXPECT_EQ(allocator.reserved(), cached + 20 * kMiB);
    allocator.free(other);
    EXPECT_EQ(allocator.reserved(), cached);
  }
}

TEST(CachingAllocator, AsksForSegmentsByTheSizeOfTheRequest) {
  EXPECT_EQ(CachingAllocator::segment_size(512), 2 * kMiB);
  EXPECT_EQ(CachingAllocator::segment_size(kMiB), 2 * kMiB);
  EXPECT_EQ(CachingAllocator::segment_size(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(CachingAllocator::segment_size(10 * kMiB - 512), 20 * kMiB);
  EXPECT_EQ(CachingAllocator::segment_size(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(CachingAllocator::segment_size(11 * kMiB), 12 * kMiB);
}

TEST(CachingAllocator, SplitsSmallBlocksAlwaysAndLargeOnesAboveOneMiB) {
  CachingAllocator a = plain();
  a.allocate(1000);
  EXPECT_EQ(a.allocated(), 1024);
  EXPECT_EQ(a.reserved(), 2 * kMiB);
  CachingAllocator b = plain();
  b.allocate(11 * kMiB);  // 1 MiB is left of 12: too little to split off
  EXPECT_EQ(b.allocated(), 12 * kMiB);
  b.allocate(2 * kMiB);  // 18 of 20 MiB stay free
  EXPECT_EQ(b.allocated(), 14 * kMiB);
  EXPECT_EQ(b.reserved(), 32 * kMiB);
  b.allocate(18 * kMiB);
  EXPECT_EQ(b.reserved(), 32 * kMiB);
}

TEST(CachingAllocator, TakesTheSmallestBlockThatIsLargeEnough) {
  CachingAllocator a = plain();
  const Block large = a.allocate(40 * kMiB);
  const Block fitting = a.allocate(24 * kMiB);
  a.free(large);
  a.free(fitting);
  a.allocate(22 * kMiB);
  a.allocate(40 * kMiB);  // still whole
  EXPECT_EQ(a.reserved(), 64 * kMiB);
}

// The driver gives large segments at falling addresses, so that of two that are alike the one that
// came last is the lower.
TEST(CachingAllocator, TakesTheLaterOfTwoSegmentsThatAreAlike) {
  CachingAllocator allocator = plain();
  const Block first = allocator.allocate(30 * kMiB), second = allocator.allocate(30 * kMiB);
  const std::int64_t later = allocator.address_of_block(second);
  EXPECT_LT(later, allocator.address_of_block(first));
  allocator.free(first);
  allocator.free(second);
  EXPECT_EQ(allocator.address_of_block(allocator.allocate(30 * kMiB)), later);
}

TEST(CachingAllocator, JoinsFreeNeighboursOfASegment) {
  CachingAllocator a = plain();
  const Block first = a.allocate(6 * kMiB);
  const Block second = a.allocate(6 * kMiB);
  const Block third = a.allocate(8 * kMiB);
  EXPECT_EQ(a.reserved(), 20 * kMiB);
  a.free(first);
  a.free(third);
  a.allocate(14 * kMiB);  // 6 and 8 are apart
  EXPECT_EQ(a.reserved(), 34 * kMiB);
  a.free(second);
  a.allocate(20 * kMiB);  // all three are one block again
  EXPECT_EQ(a.reserved(), 34 * kMiB);
}

TEST(CachingAllocator, KeepsPoolsOfStreamsAndSizesApart) {
  CachingAllocator a = plain();
  a.free(a.allocate(20 * kMiB, Stream::compute));
  a.allocate(20 * kMiB, Stream::copy);
  EXPECT_EQ(a.reserved(), 40 * kMiB);
  a.allocate(512, Stream::compute);  // small: not from the free 20 MiB
  EXPECT_EQ(a.reserved(), 42 * kMiB);
}

TEST(CachingAllocator, GivesCachedSegmentsBackBeforeItFails) {
  CachingAllocator a(AllocatorOptions{.limit = 100 * kMiB});
  const Block first = a.allocate(60 * kMiB);
  a.allocate(30 * kMiB);
  a.free(first);
  EXPECT_NE(a.allocate(70 * kMiB), CachingAllocator::kNone);
  EXPECT_EQ(a.retries(), 1);
  EXPECT_EQ(a.reserved(), 100 * kMiB);
  EXPECT_EQ(a.allocate(2 * kMiB), CachingAllocator::kNone);
}

TEST(CachingAllocator, CannotGiveBackASegmentWithALiveBlock) {
  CachingAllocator a(AllocatorOptions{.limit = 100 * kMiB});
  const Block whole = a.allocate(60 * kMiB);
  a.free(whole);
  a.allocate(10 * kMiB);  // now 50 MiB of the segment are free, and pinned
  EXPECT_EQ(a.allocate(60 * kMiB), CachingAllocator::kNone);
  EXPECT_EQ(a.reserved(), 60 * kMiB);
  EXPECT_NE(a.allocate(50 * kMiB), CachingAllocator::kNone);
}

TEST(ExpandableSegments, GrowByPagesAndServeAnySize) {
  CachingAllocator a(AllocatorOptions{.expandable_segments = true});
  const Block first = a.allocate(30 * kMiB);
  EXPECT_EQ(a.reserved(), 40 * kMiB);
  const Block second = a.allocate(30 * kMiB);  // 10 are there, 20 are added
  EXPECT_EQ(a.reserved(), 60 * kMiB);
  a.free(first);
  a.free(second);
  a.allocate(70 * kMiB);  // the same addresses and one page more
  EXPECT_EQ(a.reserved(), 80 * kMiB);
}

TEST(ExpandableSegments, GiveBackWholePagesOfFreeBlocks) {
  CachingAllocator a(AllocatorOptions{.expandable_segments = true, .limit = 100 * kMiB});
  const Block first = a.allocate(50 * kMiB);
  a.allocate(10 * kMiB);
  a.free(first);
  EXPECT_NE(a.allocate(60 * kMiB), CachingAllocator::kNone);  // 40 of the 50 MiB went back
  EXPECT_EQ(a.retries(), 1);
  EXPECT_EQ(a.reserved(), 80 * kMiB);
}

Program two_tensor_step() {
  Program program;
  ProgramBuilder b(program);
  b.resident(Category::parameters, 10 * kMiB, 2);
  b.resident(Category::optimizer_states, 40 * kMiB);
  b.begin_phase(Phase::forward);
  b.begin_repeat(3);
  b.alloc_named(Category::activations, 16 * kMiB, 2);
  b.end_repeat();
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  b.begin_repeat(3);
  b.free_named(Category::activations, 16 * kMiB, 2);
  b.end_repeat();
  b.end_phase(Phase::backward);
  b.begin_phase(Phase::step);
  Event states;
  states.category = Category::optimizer_states;
  states.bytes = 20 * kMiB;
  states.count = 2;
  b.once(1, {states});
  b.end_phase(Phase::step);
  return program;
}

// A gradient of 12 MiB stands in a segment of 30 MiB; one of 20 MiB, which it would fit better, is
// free when it takes its place over: it stays, and 20 and 18 MiB find room.
TEST(SimulateReserved, HandsAPlaceOver) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::backward);
  b.alloc_named(Category::activations, 30 * kMiB, 1);
  b.alloc_named(Category::activations, 20 * kMiB, 2);
  b.free_named(Category::activations, 30 * kMiB, 1);
  b.alloc_named(Category::gradients, 12 * kMiB, 3);
  b.free_named(Category::activations, 20 * kMiB, 2);
  b.free_named(Category::gradients, 12 * kMiB, 3);
  b.alloc(Category::gradients, 12 * kMiB);
  b.alloc_named(Category::activations, 20 * kMiB, 4);
  b.alloc_named(Category::activations, 18 * kMiB, 5);
  b.free_named(Category::activations, 18 * kMiB, 5);
  b.free_named(Category::activations, 20 * kMiB, 4);
  b.free(Category::gradients, 12 * kMiB);
  b.end_phase(Phase::backward);
  EXPECT_EQ(simulate_reserved(program).reserved, (30 + 20) * kMiB);
}

// Three layers keep 16 MiB each. The first one's kernel is timed beside 50 MiB, of which the second
// and third layer take parts.
TEST(SimulateReserved, TimesAKernelWhereItFirstRuns) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.begin_repeat(3);
  b.alloc_named(Category::activations, 16 * kMiB, 1);
  b.times_kernel(7, 50 * kMiB);
  b.end_repeat();
  b.times_kernel(7, 50 * kMiB);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  b.begin_repeat(3);
  b.free_named(Category::activations, 16 * kMiB, 1);
  b.end_repeat();
  b.end_phase(Phase::backward);
  EXPECT_EQ(program.once.size(), 1U);
  EXPECT_EQ(simulate_reserved(program).reserved, (16 + 50) * kMiB);
}

// The states come when the first step's activations are cached: two 16 MiB segments cannot hold
// them, so they take 40 MiB of their own, and the second step finds its activations' segments free.
TEST(SimulateReserved, MakesStatesInTheFirstStep) {
  const ReservedProfile profile = simulate_reserved(two_tensor_step());
  EXPECT_EQ(profile.reserved, (20 + 48 + 40) * kMiB);
  EXPECT_FALSE(profile.out_of_memory);
}

/// Logits of 60 MiB go before the backward pass needs its library's workspace of 30.
Program step_with_workspaces(bool cold) {
  Program program;
  ProgramBuilder b(program);
  b.resident(Category::workspace, 30 * kMiB, 2);
  b.begin_phase(Phase::forward);
  b.transient(Category::logits_and_loss, 60 * kMiB);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  if (cold) b.makes_workspace(30 * kMiB);
  b.end_phase(Phase::backward);
  return program;
}

// It then lies in the segment of the logits, and those of the second step need another one.
TEST(SimulateReserved, MakesAWorkspaceWhereSomethingElseHadBeen) {
  EXPECT_EQ(simulate_reserved(step_with_workspaces(false)).reserved, (30 + 30 + 60) * kMiB);
  EXPECT_EQ(simulate_reserved(step_with_workspaces(true)).reserved, (30 + 60 + 60) * kMiB);
}

// What building leaves cached is not there any more when it has been given back.
TEST(SimulateReserved, GivesBackWhatBuildingLeftCached) {
  Program program;
  ProgramBuilder b(program);
  Event loaded;
  loaded.category = Category::parameters;
  loaded.bytes = 64 * kMiB;
  Event dropped = loaded;
  dropped.kind = Event::Kind::free;
  Event emptied;
  emptied.kind = Event::Kind::empty_cache;
  b.begin_phase(Phase::forward);
  b.transient(Category::activations, 100 * kMiB);
  b.end_phase(Phase::forward);
  program.keeps_build_cache = true;
  program.build = {loaded, dropped};
  EXPECT_EQ(simulate_reserved(program).reserved, (64 + 100) * kMiB);
  program.build.push_back(emptied);
  EXPECT_EQ(simulate_reserved(program).reserved, 100 * kMiB);
}

TEST(SimulateReserved, StopsWhenAStepLeavesTheAllocatorAsItWas) {
  // The second step begins as it ends: a third one would do the same.
  const ReservedProfile profile = simulate_reserved(two_tensor_step());
  EXPECT_EQ(profile.steps, 2);
  EXPECT_EQ(profile.requested, (20 + 48 + 40) * kMiB);
  EXPECT_EQ(profile.phases[static_cast<std::size_t>(Phase::forward)].peak, (20 + 48 + 40) * kMiB);
}

TEST(SimulateReserved, CountsWhatIsNotSplitOff) {
  Program program;
  ProgramBuilder b(program);
  b.resident(Category::parameters, 11 * kMiB);
  b.begin_phase(Phase::forward);
  b.alloc(Category::activations, 15 * kMiB);
  b.free(Category::activations, 15 * kMiB);
  b.end_phase(Phase::forward);
  const ReservedProfile profile = simulate_reserved(program);
  const PhaseBytes rests = profile.rests[static_cast<std::size_t>(Phase::forward)];
  EXPECT_EQ(rests.peak, 2 * kMiB);  // of 12 and of 16 MiB
  EXPECT_EQ(rests.end, kMiB);
}

TEST(SimulateReserved, GoesOnToStepsThatDoMore) {
  Program program = two_tensor_step();
  Event late;
  late.category = Category::workspace;
  late.bytes = 64 * kMiB;
  ProgramBuilder(program).once(3, {late});
  const ReservedProfile profile = simulate_reserved(program);
  EXPECT_EQ(profile.steps, 4);
  EXPECT_EQ(profile.reserved, (20 + 48 + 40 + 64) * kMiB);
}

TEST(SimulateReserved, TellsWhenTheStepRunsOutOfMemory) {
  const Program program = two_tensor_step();
  EXPECT_FALSE(simulate_reserved(program, {.limit = 108 * kMiB}).out_of_memory);
  const ReservedProfile profile = simulate_reserved(program, {.limit = 107 * kMiB});
  EXPECT_TRUE(profile.out_of_memory);
  EXPECT_EQ(profile.steps, 2);  // the first one gave activations back to make room for states
  EXPECT_EQ(profile.retries, 2);
}

TEST(SimulateReserved, FreesTheOlderOfTwoBlocksOfAName) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.alloc_named(Category::activations, 12 * kMiB, 0);
  b.alloc_named(Category::activations, 30 * kMiB, 0);
  b.free_named(Category::activations, 12 * kMiB, 0);
  program.events.back().older = true;
  b.transient(Category::workspace, 12 * kMiB);  // fits where the older one was
  b.free_named(Category::activations, 30 * kMiB, 0);
  b.end_phase(Phase::forward);
  EXPECT_EQ(simulate_reserved(program).reserved, 42 * kMiB);
}

/// What ReservedRuns shares must be what each program and each limit would have come to alone.
void expect_same_as_alone(const std::vector<Program>& programs) {
  std::vector<PacedProgram> all;
  for (const Program& program : programs) all.push_back({&program, {}});
  const std::int64_t most = simulate_reserved(programs.front()).reserved;
  const std::vector<std::int64_t> limits{most - most / 50, most - most / 10, most / 2, 2 * most};
  const std::vector<ReservedRuns> runs = reserved_runs(all, limits);
  ASSERT_EQ(runs.size(), programs.size());
  const auto expect_equal = [](const ReservedProfile& a, const ReservedProfile& b) {
    EXPECT_EQ(a.reserved, b.reserved);
    EXPECT_EQ(a.allocated, b.allocated);
    EXPECT_EQ(a.requested, b.requested);
    EXPECT_EQ(a.retries, b.retries);
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.out_of_memory, b.out_of_memory);
  };
  for (std::size_t i = 0; i < programs.size(); ++i) {
    expect_equal(runs[i].spare(), simulate_reserved(programs[i]));
    for (const std::int64_t limit : limits)
      expect_equal(runs[i].within(limit), simulate_reserved(programs[i], {.limit = limit}));
  }
}

// The second step makes a new bucket of 200 MiB. If the old one goes before the second activation,
// that finds its place; if later, it takes a segment more than the first step did.
TEST(ReservedRuns, KnowThatABlockGoesByChance) {
  Program program;
  ProgramBuilder b(program);
  Event old;
  old.category = Category::communication_buffers;
  old.bytes = 200 * kMiB;
  old.name = 0;
  program.build = {old};
  Event made = old;
  made.name = kUnnamed;
  old.kind = Event::Kind::free;
  b.begin_phase(Phase::forward);
  b.once(2, {old}, Chance::soonest);
  b.once(2, {made});
  b.alloc(Category::activations, 200 * kMiB);
  b.once(2, {old}, Chance::usual);
  b.alloc(Category::activations, 200 * kMiB);
  b.once(2, {old}, Chance::latest);
  b.free(Category::activations, 400 * kMiB);
  b.end_phase(Phase::forward);
  const std::vector<PacedProgram> alone{{&program, {}}};
  const ReservedRuns runs = reserved_runs(alone, {}).front();
  EXPECT_EQ(runs.spare().reserved, 600 * kMiB);
  EXPECT_EQ(runs.least(), 600 * kMiB);
  EXPECT_EQ(runs.most(), 800 * kMiB);
}

// A gradient of 200 MiB finds the place of an activation that is as large. Of 1.6 % less the
// activation's segment has 198 MiB, and the gradient takes another one.
TEST(ReservedRuns, KnowThatAPlaceHangsOnAFewBytes) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.transient(Category::activations, 200 * kMiB);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  b.transient(Category::gradients, 200 * kMiB);
  b.end_phase(Phase::backward);
  const std::vector<PacedProgram> alone{{&program, {}}};
  EXPECT_EQ(reserved_runs(alone, {}).front().most(), 200 * kMiB);
  const std::vector<PacedProgram> placed{{&program, {}, true}};
  const ReservedRuns runs = reserved_runs(placed, {}).front();
  EXPECT_EQ(runs.spare().reserved, 200 * kMiB);
  EXPECT_EQ(runs.least(), 200 * kMiB);
  EXPECT_EQ(runs.most(), 398 * kMiB);
}

TEST(ReservedRuns, AreThoseOfEachProgramAndLimitAlone) {
  expect_same_as_alone({two_tensor_step()});
  Program other = two_tensor_step();  // parts from the first in its step
  Event late;
  late.category = Category::workspace;
  late.bytes = 24 * kMiB;
  ProgramBuilder(other).once(2, {late});
  expect_same_as_alone({two_tensor_step(), other, two_tensor_step()});
  expect_same_as_alone({other, two_tensor_step()});
}

TEST(ReservedRuns, OfRanksThatDifferAreThoseOfEachAlone) {
  const HardwareCatalog hardware = load_hardware_catalog();
  for (const int stage : {1, 2}) {
    const Json json{{"model", "gpt2"},
                    {"cluster", "8xA100-40GB"},
                    {"framework", {{"name", "deepspeed"}, {"zero_stage", stage}}},
                    {"workload", {{"micro_batch", 2}, {"sequence_length", 512}}}};
    const Job job = load_job(json, "job.json", {.hardware = &hardware});
    const ModelRun run = run_segments(job.model, job.plan);
    std::vector<Program> programs;
    for (const std::int64_t rank : distinct_ranks(job.model, job.plan))
      programs.push_back(lower(job.model, job.plan, run, rank));
    ASSERT_GT(programs.size(), 1U);
    expect_same_as_alone(programs);
  }
}

struct Errors {
  double sum = 0, worst = 0;
  int count = 0;
  void add(double error) {
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
    ++count;
  }
  double mean() const { return sum / count; }
};

// Nothing about reserved memory is fitted but the share of DDP's old buckets that NCCL holds on to.
TEST(SimulateReserved, AgreesWithMeasuredTrainingSteps) {
  const Json golden = read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/training_steps.json");
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  std::map<std::string, Errors> errors;
  for (const Json& record : golden.at("records")) {
    const std::string name = record.at("name");
    const Job job = load_job(record.at("job"), name, context);
    const Program program = lower(job.model, job.plan, run_segments(job.model, job.plan), 0);
    const double measured = record.at("measured").at("reserved").get<double>();
    const double error = static_cast<double>(simulate_reserved(program).reserved) / measured - 1.0;
    const std::string framework = record.at("job").at("framework").at("name");
    errors[framework].add(error);
    EXPECT_LT(std::abs(error), framework == "ddp"     ? 0.07
                               : framework == "fsdp2" ? 0.01
                                                      : 0.06)
        << name << ": " << error;
  }
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_LT(errors["single"].mean(), 0.01);
  EXPECT_LT(errors["fsdp2"].mean(), 0.005);
  EXPECT_LT(errors["ddp"].mean(), 0.05);
}

}  // namespace
}  // namespace shardplan
