// What a kernel takes in a step, where rates are of the same one repeated in a CUDA graph.
#include <gtest/gtest.h>

#include <vector>

#include "support/plan_testing.h"
#include "timing/kernel_time.h"
#include "timing/timed_kernel.h"

namespace shardplan::kernel_in_step_test {
namespace {

Plan plan_of_round_gpu() {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.cluster.gpu.memory_bandwidth = 1e12;
  plan.cluster.gpu.multiprocessors = 20;  // with more bytes for each than an H200's
  plan.cluster.gpu.peak[PeakRate::fp32] = 1e13;
  plan.cluster.gpu.peak[PeakRate::bf16] = 1e14;
  return plan;
}

Kernel kernel(KernelKind kind, Issue issue) {
  Kernel k;
  k.kind = kind;
  k.issue = issue;
  k.type = DType::bf16;
  k.calls = 3;
  k.m = k.n = k.k = 1024;
  k.bytes = 1e9;
  k.elements = 1e8;
  return k;
}

/// Over the same kernel repeated.
double more(const Kernel& k, const Plan& plan, const TimeRates& rates = {}) {
  std::vector<TimedKernel> timed;
  time_kernels(std::vector<Kernel>{k}, plan, rates, timed);
  const double repeated =
      kernel_seconds(k, peaks_of(plan.cluster.gpu, plan.precision.compute), rates.kernels);
  return timed.front().sequence.busy - repeated;
}

TEST(KernelInStep, WaitsForItsStartAndReadsWhatIsNotInTheCache) {
  const Plan plan = plan_of_round_gpu();
  const KernelRates rates;
  const Kernel moves = kernel(KernelKind::elementwise, Issue::python);
  const double repeated =
      kernel_seconds(moves, peaks_of(plan.cluster.gpu, plan.precision.compute), rates);
  EXPECT_NEAR(more(moves, plan), (rates.in_step - 1) * repeated + 3 * rates.gap, 1e-12);
  EXPECT_NEAR(more(kernel(KernelKind::product, Issue::linear), plan), 3 * rates.gap, 1e-12);
}

/// An H200's multiprocessors have 36.4 GB/s each. Where they have fewer, PyTorch's kernels reach a
/// larger share; the rates of Inductor's are of a GPU with fewer.
TEST(KernelInStep, ReachesMoreOfAMemoryThatIsSlowerForEachMultiprocessor) {
  Plan plan = plan_of_round_gpu();
  TimeRates rates;
  for (MemoryRate& memory : rates.kernels.memory) memory.bandwidth = 1;
  const Kernel moves = kernel(KernelKind::elementwise, Issue::python);
  const Kernel inductors = kernel(KernelKind::triton_pointwise, Issue::python);
  const auto over = [&](const Kernel& k) {
    const GpuPeaks peaks = peaks_of(plan.cluster.gpu, plan.precision.compute);
    return (more(k, plan, rates) - 3 * rates.kernels.gap) / kernel_seconds(k, peaks, rates.kernels);
  };
  plan.cluster.gpu.multiprocessors = 28;  // 35.7 GB/s each
  EXPECT_NEAR(over(moves), rates.kernels.in_step * (1e12 / 28) / (4.8e12 / 132) - 1, 1e-12);
  plan.cluster.gpu.multiprocessors = 100;
  EXPECT_NEAR(over(moves), 0.01, 1e-12);
  EXPECT_NEAR(over(inductors), rates.kernels.in_step - 1, 1e-12);
}

// The repeated call finds nothing in the cache either.
TEST(KernelInStep, IsNoLongerForSumsOfMoreThanTheCacheHolds) {
  const Plan plan = plan_of_round_gpu();
  const KernelRates rates;
  Kernel sums = kernel(KernelKind::row_reduction, Issue::python);
  EXPECT_NEAR(more(sums, plan), 3 * rates.gap, 1e-12);
  sums.bytes = rates.cache_bytes / 2;
  EXPECT_GT(more(sums, plan), 4 * rates.gap);
}

// A warp adds up a row of 64 as long as one of 256.
TEST(KernelInStep, AddsUpShortRowsOneByOne) {
  const GpuPeaks peaks = peaks_of(plan_of_round_gpu().cluster.gpu, DType::bf16);
  Kernel sums = kernel(KernelKind::row_reduction, Issue::python);
  sums.m = 0;
  const double moved = kernel_seconds(sums, peaks, {});
  sums.m = 10'000'000;
  EXPECT_GT(kernel_seconds(sums, peaks, {}), 5 * moved);
}

TEST(KernelInStep, IsOneByOneInRatesOfOurEngineAndOfLists) {
  const Plan plan = plan_of_round_gpu();
  EXPECT_EQ(more(kernel(KernelKind::elementwise, Issue::launch), plan), 0);
  EXPECT_EQ(more(kernel(KernelKind::product, Issue::library), plan), 0);
  EXPECT_EQ(more(kernel(KernelKind::multi_tensor, Issue::listed), plan), 0);
}

/// Hosts were timed beside GPUs of one architecture, in eager PyTorch.
TEST(KernelInStep, IsStartedAtTheUsualHostsPaceWhereThatIsKnown) {
  Plan plan = plan_of_round_gpu();
  plan.cluster.gpu.arch = "Hopper";
  TimeRates rates;
  const auto issue = [&](Issue how) {
    std::vector<TimedKernel> timed;
    time_kernels(std::vector<Kernel>{kernel(KernelKind::elementwise, how)}, plan, rates, timed);
    return timed.front().sequence.issue;
  };
  const double quick = issue(Issue::linear), engine = issue(Issue::library);
  const double node = issue(Issue::linear_node), update = issue(Issue::waited);
  const double call = rates.host.seconds[static_cast<std::size_t>(Issue::waited)];
  rates.host.usual = {"Hopper", 1.25, {}};
  EXPECT_DOUBLE_EQ(issue(Issue::linear), 1.25 * quick);
  EXPECT_DOUBLE_EQ(issue(Issue::library), engine);
  EXPECT_LT(issue(Issue::linear_node), 1.25 * node);                   // C++ starts it
  EXPECT_NEAR(issue(Issue::waited) - update, 3 * 0.25 * call, 1e-12);  // beside its kernel
  plan.cluster.gpu.arch = "Ampere";
  EXPECT_DOUBLE_EQ(issue(Issue::linear), quick);
}

/// DeepSpeed's parts too.
TEST(KernelInStep, GoesByTheHostsBesideItsOwnGpu) {
  Plan plan = plan_of_round_gpu();
  plan.cluster.gpu.arch = "Hopper";
  plan.cluster.gpu.name = "one";
  TimeRates rates;
  const auto issue = [&](Issue how) {
    std::vector<TimedKernel> timed;
    time_kernels(std::vector<Kernel>{kernel(KernelKind::elementwise, how)}, plan, rates, timed);
    return timed.front().sequence.issue;
  };
  const double call = issue(Issue::linear), part = issue(Issue::engine);
  rates.host.usual = {"Hopper", 1.25, {{"one", 1.5}}};
  EXPECT_DOUBLE_EQ(issue(Issue::linear), 1.5 * call);
  EXPECT_DOUBLE_EQ(issue(Issue::engine), 1.5 * part);
  plan.cluster.gpu.name = "another";
  EXPECT_DOUBLE_EQ(issue(Issue::linear), 1.25 * call);
  EXPECT_DOUBLE_EQ(issue(Issue::engine), 1.25 * part);
}

TEST(KernelInStep, DoesNotWaitInAReplayedGraph) {
  Plan plan = plan_of_round_gpu();
  plan.compile = Compile{.mode = CompileMode::reduce_overhead};
  EXPECT_EQ(more(kernel(KernelKind::product, Issue::linear), plan), 0);
}

}  // namespace
}  // namespace shardplan::kernel_in_step_test
