// GPUs that reach less than their datasheets: products are slower, bounds and utilizations are not.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hardware/resolve.h"
#include "load/hardware.h"
#include "timing/kernel_time.h"
#include "timing/timed_kernel.h"

namespace shardplan::low_power_test {
namespace {

TimedKernel product_on(const char* gpu) {
  static const HardwareCatalog catalog = load_hardware_catalog();
  Plan plan;
  plan.cluster.gpu = find_gpu(catalog, gpu)->gpu;
  plan.precision.compute = DType::bf16;
  Kernel k;
  k.kind = KernelKind::product;
  k.type = DType::bf16;
  k.m = k.n = k.k = 8192;
  std::vector<TimedKernel> timed;
  time_kernels(std::vector<Kernel>{k}, plan, {}, timed);
  return timed.front();
}

/// The chip of the 700 W module with 500 W.
TEST(LowPower, ProductsOfATrainingStepTakeLonger) {
  const TimedKernel full = product_on("H100-SXM5-80GB"), less = product_on("H100-SXM5-96GB");
  EXPECT_NEAR(less.sequence.busy / full.sequence.busy, std::pow(700.0 / 500, 2.0 / 3), 0.02);
  EXPECT_NEAR(less.ideal, full.ideal, 1e-9);
}

/// What somebody measured at best is no datasheet: an MI300X's has 1,307 TFLOPS.
TEST(LowPower, BoundsAreOfTheDatasheet) {
  static const HardwareCatalog catalog = load_hardware_catalog();
  const Gpu& gpu = find_gpu(catalog, "MI300X-192GB")->gpu;
  EXPECT_NEAR(datasheet_peaks(gpu, DType::bf16).half, 1307.4e12, 1e12);
  EXPECT_LT(peaks_of(gpu, DType::bf16).half, 0.7 * datasheet_peaks(gpu, DType::bf16).half);
}

}  // namespace
}  // namespace shardplan::low_power_test
