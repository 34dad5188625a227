// Seconds that a GPU takes for one kernel, launches left out. docs/explanation/time.md derives the
// formulas.
#pragma once

#include <cstdint>

#include "hardware/cluster.h"
#include "timing/rates.h"

namespace shardplan {

/// Tiles that a product's result is cut into.
enum class ProductTile : std::uint8_t { large, narrow, small };  ///< 128×128, 128×64, 64×64

/// The rates of a GPU that kernels are timed against; what the datasheet lacks is 0.
struct GpuPeaks {
  double fp32 = 0, half = 0;  ///< FLOP/s; `half` of the 16-bit type
  double tf32 = 0;    ///< of fp32 products on tensor cores; 0: no such units, or not allowed
  double fp8 = 0;     ///< 0: no such units
  double fp4 = 0;     ///< 0: no such units
  double int8 = 0;    ///< operations/s; 0: no such units
  double memory = 0;  ///< bytes/s
  double multiprocessors = 0;
  /// fp32 FLOP/s if every lane that instructions can fill counted: what passes for an element takes
  /// instructions, of which a multiprocessor with 64 lanes issues as many a clock as one with 128.
  double slots = 0;
  std::int64_t alignment = 16;  ///< bytes that a product's widths must be multiples of
  /// Products in a batch with other widths run on tensor cores: on Hopper they do (measured), on
  /// Ampere BLOOM's runs say that they did not (docs/explanation/pipeline.md).
  bool unaligned_batches = true;
};
/// What the datasheet says, which bounds and utilizations are measured by. `tf32`: whether fp32
/// products may go to tensor cores.
GpuPeaks datasheet_peaks(const Gpu& gpu, DType compute, bool tf32 = false);

/// What kernels' shares are of: less than the datasheet's where a GPU is known to reach less, or
/// has too little power to hold the clock.
GpuPeaks peaks_of(const Gpu& gpu, DType compute, bool tf32 = false);

/// All of the kernel's calls.
double kernel_seconds(const Kernel& kernel, const GpuPeaks& gpu, const KernelRates& rates);

/// At datasheet rates, nothing lost.
double ideal_seconds(const Kernel& kernel, const GpuPeaks& gpu);

}  // namespace shardplan
