// The fused attention that PyTorch takes, by its version.
#include <gtest/gtest.h>

#include <vector>

#include "support/plan_testing.h"
#include "timing/kernel_time.h"
#include "timing/timed_kernel.h"

namespace shardplan::sdpa_kernel_test {
namespace {

Plan plan_of_gpu() {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.cluster.gpu.arch = "Hopper";
  plan.cluster.gpu.memory_bandwidth = 1e13;
  plan.cluster.gpu.multiprocessors = 100;
  plan.cluster.gpu.peak[PeakRate::fp32] = 1e13;
  plan.cluster.gpu.peak[PeakRate::bf16] = 1e14;
  return plan;
}

double seconds(const Kernel& k, const Plan& plan) {
  std::vector<TimedKernel> timed;
  TimeRates rates;
  rates.host.usual.arch = "Hopper";
  time_kernels(std::vector<Kernel>{k}, plan, rates, timed);
  return timed.front().sequence.busy;
}

/// Those of engines were not timed with PyTorch's.
TEST(SdpaKernel, EnginesKernelsHaveRatesOfTheirOwn) {
  Kernel a;
  a.kind = KernelKind::attention;
  a.type = DType::bf16;
  a.m = a.n = 2048;
  a.k = 128;
  a.batch = 64;
  const GpuPeaks peaks = datasheet_peaks(plan_of_gpu().cluster.gpu, DType::bf16, false);
  KernelRates rates;
  const double before = kernel_seconds(a, peaks, rates);
  rates.engine_forward.peak /= 2;
  EXPECT_EQ(kernel_seconds(a, peaks, rates), before);
  a.issue = Issue::library;
  EXPECT_GT(kernel_seconds(a, peaks, rates), 1.8 * before);
}

TEST(SdpaKernel, FlashAttentionTakesLongerThanCudnns) {
  Plan plan = plan_of_gpu();
  Kernel a;
  a.kind = KernelKind::attention;
  a.type = DType::bf16;
  a.causal = true;
  a.m = a.n = 8192;
  a.k = 128;
  a.batch = 64;
  const double cudnn = seconds(a, plan);
  plan.sdpa_kernel = SdpaKernel::flash_attention;
  EXPECT_GT(seconds(a, plan), 1.5 * cudnn);
  const double second = seconds(a, plan);
  plan.sdpa_kernel = SdpaKernel::flash_attn;
  EXPECT_DOUBLE_EQ(seconds(a, plan), second);
  a.k = 80;  // filled up to 96 channels, where cuDNN's are 128 wide
  const double narrow = seconds(a, plan);
  a.k = 96;
  EXPECT_DOUBLE_EQ(seconds(a, plan), narrow);
}

// An import of `flash_attention: true` does not know which GPU the job will be on.
TEST(SdpaKernel, IsAQuestionOfHopperAlone) {
  Plan plan = plan_of_gpu();
  plan.cluster.gpu.arch = "Ampere";
  Kernel a;
  a.kind = KernelKind::attention;
  a.type = DType::bf16;
  a.m = a.n = 8192;
  a.k = 128;
  const double usual = seconds(a, plan);
  plan.sdpa_kernel = SdpaKernel::flash_attention;
  EXPECT_DOUBLE_EQ(seconds(a, plan), usual);
}

}  // namespace
}  // namespace shardplan::sdpa_kernel_test
