#include "timing/product_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace shardplan {
namespace {

struct Tile {
  double m, n;
  double rate;  ///< FLOP/s of one multiprocessor
};
constexpr std::array<double, 5> kParts{1, 2, 4, 8, 16};
constexpr double kLeastPart = 256;  ///< of the depth

/// What a wave of tiles costs beside its work, and cutting the depth in parts.
struct TileCosts {
  double wave_seconds = 0;
  double depth = 1;  ///< that a tile's depth is a multiple of
  double split_seconds = 0;
  double reduction = 0;  ///< passes over fp32 parts of the result, for each part
};

/// By the best of the tiles and parts.
double tiled_seconds(const Kernel& p, const GpuPeaks& gpu, std::span<const Tile> tiles,
                     const TileCosts& costs) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k), batch = static_cast<double>(p.batch);
  double best = std::numeric_limits<double>::max();
  for (const Tile& tile : tiles) {
    // Where rows differ, a call's last tile is half full in the mean.
    const double rows = p.uneven ? m / tile.m + 0.5 : std::ceil(m / tile.m);
    const double count = rows * std::ceil(n / tile.n) * batch;
    for (const double parts : kParts) {
      if (parts > 1 && k / parts < kLeastPart) break;
      const double waves = std::ceil(count * parts / gpu.multiprocessors);
      const double depth = std::ceil(k / parts / costs.depth) * costs.depth;
      double seconds = waves * (2 * tile.m * tile.n * depth / tile.rate + costs.wave_seconds);
      if (parts > 1)
        seconds += costs.split_seconds + costs.reduction * parts * m * n * batch * 4 / gpu.memory;
      best = std::min(best, seconds);
    }
  }
  return best;
}

double flops_of_call(const Kernel& p) {
  return 2 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(p.batch);
}

/// On tensor cores; `split`: seconds for a depth that is cut.
double tensor_tiles(const Kernel& p, const GpuPeaks& gpu, const ProductRates& r, double peak,
                    double split) {
  constexpr double kDepth = 64;
  const auto rate = [&](ProductTile kind) {
    return peak / gpu.multiprocessors * r.tile[static_cast<std::size_t>(kind)];
  };
  const std::array<Tile, 4> tiles{{{128, 128, rate(ProductTile::large)},
                                   {128, 64, rate(ProductTile::narrow)},
                                   {64, 128, rate(ProductTile::narrow)},
                                   {64, 64, rate(ProductTile::small)}}};
  const double seconds = tiled_seconds(p, gpu, tiles, {r.wave_seconds, kDepth, split, r.reduction});
  return seconds * at_power_limit(flops_of_call(p), r);
}

/// `whole`: share of the peak that a tile of 128 reaches.
double fp32_tiles(const Kernel& p, const GpuPeaks& gpu, const KernelRates& rates, double whole) {
  const LibraryProductRates& l = rates.library;
  const double peak = gpu.fp32 / gpu.multiprocessors, rate = rates.product.fp32 * peak;
  const std::array<Tile, 3> tiles{
      {{128, 128, whole * peak}, {64, 64, l.fp32_small * rate}, {32, 32, l.fp32_tiny * rate}}};
  return tiled_seconds(p, gpu, tiles, {0, 1, l.fp32_split, rates.product.reduction});
}

/// Whether all widths that matter are multiples: where rows begin. Each operand's rows are as long
/// as one of two widths, so that how many rows a single product has is all the same, m of them or,
/// summed, k (cuBLAS, "Tensor Core Usage": lda, ldb and ldc).
bool widths_divide(const Kernel& p, std::int64_t multiple) {
  const bool m = p.m % multiple == 0, k = p.k % multiple == 0;
  if (p.n % multiple != 0) return false;
  if (p.batch > 1) return m && k;
  return p.sums_rows ? m : k;
}

/// Whether tensor cores take them as they are.
bool is_aligned(const Kernel& p, const GpuPeaks& gpu) {
  return widths_divide(p, std::max<std::int64_t>(1, gpu.alignment / size_of(p.type)));
}

double unaligned_seconds(const Kernel& p, const GpuPeaks& gpu, const ProductRates& r, double peak) {
  const bool odd = !widths_divide(p, 2);
  const double rate = p.batch > 1 && !gpu.unaligned_batches ? r.fp32 * gpu.fp32
                                                            : (odd ? r.odd : r.unaligned) * peak;
  return r.seconds + std::max(flops_of_call(p) / rate, product_bytes(p) / (r.memory * gpu.memory));
}

/// Of what products of 16 bits reach of their peak.
double share_reached(const Kernel& p, const ProductRates& r) {
  if (multiplies_at(p.type, PeakRate::fp8)) return r.fp8;
  if (size_of(p.type) < 4) return 1;
  return p.sums_rows && p.batch == 1 ? r.tf32_summed : r.tf32;
}

double library_seconds(const Kernel& p, const GpuPeaks& gpu, const KernelRates& rates,
                       double peak) {
  const ProductRates& r = rates.product;
  const LibraryProductRates& l = rates.library;
  const double bytes = product_bytes(p);
  const double moved = bytes / ((bytes < rates.cache_bytes ? l.cached : r.memory) * gpu.memory);
  if (peak == 0) return r.seconds + l.fp32_gap + std::max(fp32_tiles(p, gpu, rates, r.fp32), moved);
  return l.burst * (r.seconds + std::max(tensor_tiles(p, gpu, r, peak, l.split), moved)) + l.gap;
}

/// What tiles take and what moves are beside each other. Not where the result is added to what is
/// there: a tile's multiplications are over when it reads and writes that. Low-rank products that
/// experts' adapters add, 12 in fp32 of each of two profiled steps on an H200, took 1.00 and 0.99
/// of the sum, 32 in bf16 of another 1.0 (docs/explanation/time.md, "Adapters of experts").
double with_operands(const Kernel& p, double tiles, double moved) {
  return p.adds ? tiles + moved : std::max(tiles, moved);
}

}  // namespace

double at_power_limit(double flops, const ProductRates& rates) {
  constexpr double kLong = 1e12;
  return 1 + rates.throttling * std::min(1.0, flops / kLong);
}

bool is_half(DType type) {
  return size_of(type) == 2;
}

bool multiplies_at(DType type, PeakRate rate) {
  return format_of(type).rate == rate;
}

double tensor_peak(DType type, const GpuPeaks& gpu) {
  if (is_half(type)) return gpu.half;
  if (multiplies_at(type, PeakRate::fp32) || multiplies_at(type, PeakRate::tf32)) return gpu.tf32;
  return multiplies_at(type, PeakRate::fp8)    ? gpu.fp8
         : multiplies_at(type, PeakRate::int8) ? gpu.int8
         : multiplies_at(type, PeakRate::fp4)  ? gpu.fp4
                                               : 0;
}

double product_bytes(const Kernel& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  return (m * k + k * n + (p.adds ? 2 : 1) * m * n) * static_cast<double>(p.batch) *
         static_cast<double>(size_of(p.type));
}

double product_seconds(const Kernel& p, const GpuPeaks& gpu, const KernelRates& rates) {
  const ProductRates& r = rates.product;
  const double whole = tensor_peak(p.type, gpu);
  if (whole > 0 && !is_aligned(p, gpu)) return r.burst * unaligned_seconds(p, gpu, r, whole);
  const double peak = whole * share_reached(p, r);
  if (p.issue == Issue::library) return library_seconds(p, gpu, rates, peak);
  const double moved = product_bytes(p) / (r.memory * gpu.memory);
  const double tiles =
      peak == 0 ? fp32_tiles(p, gpu, rates, r.fp32_tile) : tensor_tiles(p, gpu, r, peak, 0);
  return (peak == 0 ? 1 : r.burst) * (r.seconds + with_operands(p, tiles, moved));
}

}  // namespace shardplan
