#include "timing/kernel_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shardplan {
namespace {

struct Tile {
  double m, n;
  ProductTile kind;
};
constexpr std::array<Tile, 4> kTiles{{{128, 128, ProductTile::large},
                                      {128, 64, ProductTile::narrow},
                                      {64, 128, ProductTile::narrow},
                                      {64, 64, ProductTile::small}}};
constexpr std::array<double, 5> kParts{1, 2, 4, 8, 16};
constexpr double kDepth = 64;       ///< a tile's depth is a multiple of it
constexpr double kLeastPart = 256;  ///< of the depth

bool is_half(DType type) {
  return size_of(type) == 2;
}

double product_bytes(const Kernel& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  return (m * k + k * n + (p.adds ? 2 : 1) * m * n) * static_cast<double>(p.batch) *
         static_cast<double>(size_of(p.type));
}

bool multiplies_at(DType type, PeakRate rate) {
  return format_of(type).rate == rate;
}

/// FLOP/s of tensor cores for operands of this type; 0: they take none.
double tensor_peak(DType type, const GpuPeaks& gpu) {
  if (is_half(type)) return gpu.half;
  return multiplies_at(type, PeakRate::fp8)    ? gpu.fp8
         : multiplies_at(type, PeakRate::int8) ? gpu.int8
         : multiplies_at(type, PeakRate::fp4)  ? gpu.fp4
                                               : 0;
}

/// One call of a product on tensor cores.
double tensor_product_seconds(const Kernel& p, const GpuPeaks& gpu, const KernelRates& rates) {
  const ProductRates& r = rates.product;
  const double peak = tensor_peak(p.type, gpu) * (multiplies_at(p.type, PeakRate::fp8) ? r.fp8 : 1);
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k), batch = static_cast<double>(p.batch);
  const double flops = 2 * m * n * k * batch;
  const std::int64_t multiple = std::max<std::int64_t>(1, gpu.alignment / size_of(p.type));
  if (p.m % multiple != 0 || p.n % multiple != 0 || p.k % multiple != 0) {
    const bool odd = p.m % 2 != 0 || p.n % 2 != 0 || p.k % 2 != 0;
    const double rate = p.batch > 1 && !gpu.unaligned_batches ? r.fp32 * gpu.fp32
                                                              : (odd ? r.odd : r.unaligned) * peak;
    return r.seconds + std::max(flops / rate, product_bytes(p) / (r.memory * gpu.memory));
  }
  double best = std::numeric_limits<double>::max();
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(m / tile.m) * std::ceil(n / tile.n) * batch;
    const double rate = peak / gpu.multiprocessors * r.tile[static_cast<std::size_t>(tile.kind)];
    for (const double parts : kParts) {
      if (parts > 1 && k / parts < kLeastPart) break;
      const double waves = std::ceil(tiles * parts / gpu.multiprocessors);
      const double depth = std::ceil(k / parts / kDepth) * kDepth;
      double seconds = waves * (2 * tile.m * tile.n * depth / rate + r.wave_seconds);
      if (parts > 1) seconds += r.reduction * parts * m * n * batch * 4 / gpu.memory;
      best = std::min(best, seconds);
    }
  }
  best *= 1 + r.throttling * std::min(1.0, flops / 1e12);
  return r.seconds + std::max(best, product_bytes(p) / (r.memory * gpu.memory));
}

double product_seconds(const Kernel& p, const GpuPeaks& gpu, const KernelRates& rates) {
  if (tensor_peak(p.type, gpu) > 0)
    return rates.product.burst * tensor_product_seconds(p, gpu, rates);
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(p.k) * static_cast<double>(p.batch);
  return rates.product.seconds + std::max(flops / (rates.product.fp32 * gpu.fp32),
                                          product_bytes(p) / (rates.product.memory * gpu.memory));
}

double attention_seconds(const Kernel& a, const GpuPeaks& gpu, const KernelRates& rates) {
  const bool backward = a.kind == KernelKind::attention_backward;
  const AttentionRates& r = a.by_rows  ? (backward ? rates.by_rows_backward : rates.by_rows)
                            : a.masked ? (backward ? rates.masked_backward : rates.masked)
                                       : (backward ? rates.attention_backward : rates.attention);
  const auto keys = static_cast<double>(a.n), width = static_cast<double>(a.k);
  const double seen = a.causal ? std::min(keys, keys / 2 + r.diagonal) : keys;
  const double flops = (backward ? 10.0 : 4.0) * static_cast<double>(a.m) * seen * width *
                       static_cast<double>(a.batch);
  const double share = r.peak * width / (width + r.half_width);
  const double rate = a.by_rows                         ? gpu.fp32 * share
                      : is_half(a.type) && gpu.half > 0 ? gpu.half * share
                                                        : gpu.fp32 * rates.fp32_attention;
  const double slower = a.drops && !backward ? rates.attention_dropout : 1;
  return r.seconds + slower * flops / rate;
}

/// The datasheet's rate, or less: the shares of it that products take were fitted on an H200, of
/// fp8 on an H100, of whose best products the catalogue has these. Where the best that somebody
/// measured on a GPU is a smaller share (MI300X: 51 %), its products are slower by as much. A
/// format that nobody measured is as the 16-bit one (MI300X: arXiv 2510.27583, about 45 % in fp8,
/// bf16, fp16).
double reached(const Gpu& gpu, PeakRate rate) {
  constexpr double kHalf = 794.5 / 989.5, kFp8 = 1402.6 / 1979.0;
  const double peak = gpu.peak[rate].value_or(0);
  const auto share = [&](PeakRate of, double best) {
    if (!gpu.achievable[of] || !gpu.peak[of]) return 1.0;
    return std::min(1.0, *gpu.achievable[of] / *gpu.peak[of] / best);
  };
  if (rate == PeakRate::fp8 && gpu.achievable[rate]) return peak * share(rate, kFp8);
  return peak * share(PeakRate::bf16, kHalf);
}

}  // namespace

GpuPeaks peaks_of(const Gpu& gpu, DType compute) {
  GpuPeaks peaks;
  peaks.fp32 = gpu.peak[PeakRate::fp32].value_or(0);
  const GpuAbilities& can = gpu.abilities;
  const DType narrow = is_half(compute) ? compute : DType::bf16;
  peaks.half = reached(gpu, *format_of(narrow).rate);
  peaks.fp8 = reached(gpu, PeakRate::fp8);
  peaks.fp4 = gpu.peak[PeakRate::fp4].value_or(0);
  peaks.int8 = gpu.peak[PeakRate::int8].value_or(0);
  peaks.memory = gpu.memory_bandwidth.value_or(0);
  peaks.slots =
      peaks.fp32 * static_cast<double>(can.issue_lanes) / static_cast<double>(can.fp32_lanes);
  peaks.alignment = can.product_alignment_bytes;
  peaks.unaligned_batches = can.unaligned_batched_products;
  peaks.multiprocessors =
      static_cast<double>(gpu.multiprocessors.value_or(kTypicalMultiprocessors));
  return peaks;
}

double kernel_seconds(const Kernel& kernel, const GpuPeaks& gpu, const KernelRates& rates) {
  double one = 0;
  switch (kernel.kind) {
    case KernelKind::none:
      return 0;
    case KernelKind::product:
      one = product_seconds(kernel, gpu, rates);
      break;
    case KernelKind::attention:
    case KernelKind::attention_backward:
      one = attention_seconds(kernel, gpu, rates);
      break;
    default: {
      const MemoryRate& r = rates.memory[static_cast<std::size_t>(kernel.kind)];
      if (kernel.kind == KernelKind::multi_tensor)  // many tensors a launch
        return rates.slowdown *
               (r.seconds + kernel.calls * std::max(kernel.bytes / (r.bandwidth * gpu.memory),
                                                    kernel.elements * r.slots / gpu.slots));
      const double share = kernel.bytes < rates.cache_bytes ? r.cached : r.bandwidth;
      // Operands of fp8 products are all that is copied to another layout in one byte.
      const bool turned =
          kernel.kind == KernelKind::strided && multiplies_at(kernel.type, PeakRate::fp8);
      const double slots = turned ? rates.turned_slots : r.slots;
      one = r.seconds +
            std::max(kernel.bytes / (share * gpu.memory), kernel.elements * slots / gpu.slots);
    }
  }
  return rates.slowdown * one * kernel.calls;
}

double ideal_seconds(const Kernel& kernel, const GpuPeaks& gpu) {
  const double tensor = tensor_peak(kernel.type, gpu);
  const double peak = tensor > 0 ? tensor : gpu.fp32;
  const double bytes = kernel.kind == KernelKind::product ? product_bytes(kernel) : kernel.bytes;
  return std::max(flops_of(kernel) / peak, bytes * kernel.calls / gpu.memory);
}

}  // namespace shardplan
