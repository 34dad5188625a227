// Kernels timed alone with their operands out of the cache (measure/rates/cold_kernels.py), beside
// what they are said to take.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hardware/catalog.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/rates.h"
#include "timing/kernel_time.h"

namespace shardplan::cold_kernels_test {
namespace {

struct Errors {
  std::size_t rows = 0;
  double mean = 0, largest = 0;
};

/// `belongs`: takes a Kernel.
template <typename Belongs>
Errors errors_of(Belongs belongs) {
  const HardwareCatalog hardware = load_hardware_catalog();
  static const RateRecord record = load_rate_record(
      SHARDPLAN_SOURCE_DIR "/data/measurements/rates/h200/h200-cold-kernels.json", {&hardware, ""});
  const KernelRates rates = load_calibration().time.kernels;
  const Gpu& gpu = find_gpu(hardware, "H200-SXM5-141GB")->gpu;
  Errors errors;
  for (const KernelRow& row : record.kernels) {
    if (!belongs(row.kernel)) continue;
    const double error = std::abs(
        kernel_seconds(row.kernel, peaks_of(gpu, row.kernel.type), rates) / row.seconds - 1);
    ++errors.rows;
    errors.mean += error;
    errors.largest = std::max(errors.largest, error);
  }
  errors.mean /= static_cast<double>(errors.rows);
  return errors;
}

auto attends(KernelKind kind, bool masked) {
  return
      [=](const Kernel& k) { return k.kind == kind && k.masked == masked && size_of(k.type) == 2; };
}

// Rows of 128 to 8,192, heads of 64 to 256, all and some of them with keys of their own.
TEST(ColdKernels, OfAttentionsBackwardPassTakeWhatWasMeasured) {
  const Errors errors = errors_of(attends(KernelKind::attention_backward, false));
  EXPECT_EQ(errors.rows, 136U);
  EXPECT_LT(errors.mean, 0.045);
  EXPECT_LT(errors.largest, 0.19);
}

TEST(ColdKernels, OfAttentionsForwardPassTakeWhatWasMeasured) {
  const Errors errors = errors_of(attends(KernelKind::attention, false));
  EXPECT_EQ(errors.rows, 136U);
  EXPECT_LT(errors.mean, 0.04);
  EXPECT_LT(errors.largest, 0.19);
}

TEST(ColdKernels, OfAttentionUnderAMaskTakeWhatWasMeasured) {
  for (const KernelKind kind : {KernelKind::attention, KernelKind::attention_backward}) {
    const Errors errors = errors_of(attends(kind, true));
    EXPECT_EQ(errors.rows, 9U);
    EXPECT_LT(errors.mean, 0.02);
  }
}

TEST(ColdKernels, OfALossOverAVocabularyTakeWhatWasMeasured) {
  const Errors errors =
      errors_of([](const Kernel& k) { return k.kind == KernelKind::log_softmax_backward; });
  EXPECT_EQ(errors.rows, 36U);
  EXPECT_LT(errors.mean, 0.03);
}

}  // namespace
}  // namespace shardplan::cold_kernels_test
