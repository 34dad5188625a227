// How long a matrix product takes: waves of tiles over the multiprocessors, or its operands' bytes.
#pragma once

#include "program/kernel.h"
#include "timing/kernel_time.h"

namespace shardplan {

bool is_half(DType type);
bool multiplies_at(DType type, PeakRate rate);
/// FLOP/s of tensor cores for operands of this type; 0: they take none.
double tensor_peak(DType type, const GpuPeaks& gpu);
/// Operands and result, of one call.
double product_bytes(const Kernel& product);

/// How much longer a call of so many FLOP takes where calls follow one another: long ones meet the
/// GPU's power limit (ProductRates::throttling).
double at_power_limit(double flops, const ProductRates& rates);

/// One call. Those of our engine (Issue::library) are timed as it starts them.
double product_seconds(const Kernel& product, const GpuPeaks& gpu, const KernelRates& rates);

}  // namespace shardplan
