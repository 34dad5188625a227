// Fits find the rates that measurements were made with.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/fit.h"
#include "hardware/gpu_names.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "timing/kernel_time.h"

namespace shardplan {
namespace {

Gpu h200() {
  const HardwareCatalog catalog = load_hardware_catalog();
  return choose_gpu("NVIDIA H200", catalog).gpu->gpu;
}

std::vector<KernelRow> products(const KernelRates& rates, const Gpu& gpu) {
  std::vector<KernelRow> rows;
  for (const std::int64_t m : {256, 1024, 4096, 16384})
    for (const std::int64_t n : {512, 2048, 8192})
      for (const std::int64_t k : {512, 2048, 8192}) {
        KernelRow row;
        row.kernel.kind = KernelKind::product;
        row.kernel.type = DType::bf16;
        row.kernel.m = m;
        row.kernel.n = n;
        row.kernel.k = k;
        row.seconds = kernel_seconds(row.kernel, peaks_of(gpu, DType::bf16), rates);
        rows.push_back(row);
      }
  return rows;
}

TEST(FitPositive, FindsAStraightLineDespiteAnOutlier) {
  double offset = 1, slope = 1;
  const auto logarithms = [&] {
    std::vector<double> all;
    for (int x = 1; x <= 30; ++x)
      all.push_back(std::log((offset + slope * x) / (x == 15 ? 500.0 : 5 + 2.0 * x)));
    return all;
  };
  fit_positive({&offset, &slope}, logarithms);
  EXPECT_NEAR(offset, 5, 0.3);
  EXPECT_NEAR(slope, 2, 0.05);
}

TEST(Calibrate, RecoversTheRatesOfProducts) {
  const Gpu gpu = h200();
  TimeRates truth = load_calibration().time;
  truth.kernels.product.burst = 1;
  truth.kernels.product.tile[0] *= 0.8;
  truth.kernels.product.wave_seconds *= 1.5;
  RateRecord record;
  record.kernels = products(truth.kernels, gpu);
  const CalibrationFit fit = calibrate({record}, {}, gpu, load_calibration().time);
  ASSERT_FALSE(fit.quality.empty());
  EXPECT_LT(fit.quality.front().mean_error, 0.02);
  // Shapes that were not among the measurements.
  for (const std::int64_t n : {768, 3072, 5120}) {
    Kernel other = record.kernels.front().kernel;
    other.m = other.n = other.k = n;
    const GpuPeaks peaks = peaks_of(gpu, DType::bf16);
    EXPECT_NEAR(kernel_seconds(other, peaks, fit.rates.kernels) /
                    kernel_seconds(other, peaks, truth.kernels),
                1, 0.05)
        << n;
  }
}

TEST(Calibrate, LeavesWhatWasNotMeasuredAsItWas) {
  const TimeRates before = load_calibration().time;
  const CalibrationFit fit = calibrate({RateRecord{}}, {}, h200(), before);
  EXPECT_TRUE(fit.quality.empty());
  EXPECT_EQ(time_json(fit.rates), time_json(before));
}

}  // namespace
}  // namespace shardplan
