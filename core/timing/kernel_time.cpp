#include "timing/kernel_time.h"

#include <algorithm>
#include <cmath>

#include "timing/product_time.h"

namespace shardplan {
namespace {

/// Fused kernels for wider heads are as wide as 256 under a mask: heads of 160 and 192 take as long
/// as those do.
constexpr std::int64_t kWidestHead = 256;
bool is_wide(const Kernel& a) {
  constexpr std::int64_t kWide = 128;
  return !a.by_rows && is_half(a.type) && a.k > kWide && a.k <= kWidestHead;
}

/// cuDNN's fused kernels are 64, 128 or 256 channels wide, and compute over all of them: heads of
/// 80 and 96 take as long as those of 128 (forward, 48 and 49 µs beside 48, h200-kernels.json; a
/// tower's of 72 in a profiled step). What lies between the two wider ones was not measured.
/// FlashAttention-2's are multiples of 32.
double computed_width(const Kernel& a, const AttentionRates& rates) {
  if (is_wide(a) && a.masked) return static_cast<double>(kWidestHead);
  const bool fused = !a.by_rows && !a.masked && is_half(a.type);
  const auto width = static_cast<double>(a.k);
  return !fused || is_wide(a) ? width : std::ceil(width / rates.filled) * rates.filled;
}

/// Pairs of a query and a key that are computed. Tiles of a causal mask differ: the last one sees
/// all keys, and while it ends most of the GPU is idle.
double computed_pairs(const Kernel& a, const GpuPeaks& gpu, const AttentionRates& rates) {
  constexpr double kTileRows = 128;
  const auto rows = static_cast<double>(a.m), keys = static_cast<double>(a.n);
  const auto all = static_cast<double>(a.batch) * rows;
  if (!a.causal) return all * keys;
  return all * std::min(keys, keys / 2 + rates.diagonal) +
         rates.tail * std::min(kTileRows, rows) * keys * gpu.multiprocessors;
}

/// What cuDNN's kernels move beside their products. Forward they read queries, keys and values and
/// write a result. Backward one kernel reads the result and its gradient and clears fp32 gradients
/// of queries, another rounds these; where heads share keys two more add up what each head made.
double moved_bytes(const Kernel& a, bool backward) {
  constexpr double kHalf = 2, kFull = 4;
  const auto elements = [&](std::int64_t batch, std::int64_t rows) {
    return static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(a.k);
  };
  const double queries = elements(a.batch, a.m), keys = elements(a.key_batch, a.n);
  if (!backward) return kHalf * (2 * queries + 2 * keys);
  const double shared = a.key_batch < a.batch ? 2 * kHalf * (elements(a.batch, a.n) + keys) : 0;
  return (2 * kHalf + kFull) * queries + (kFull + kHalf) * queries + shared;
}

/// The share of the fp32 peak that attention reaches was fitted beside the rows that those of
/// engines compute beyond a mask's half.
const AttentionRates& attention_rates(const Kernel& a, bool backward, const KernelRates& rates) {
  if (a.by_rows) return backward ? rates.by_rows_backward : rates.by_rows;
  if (a.masked) return backward ? rates.masked_backward : rates.masked;
  if (is_engines(a)) return backward ? rates.engine_backward : rates.engine_forward;
  if (backward) return rates.attention_backward;
  return is_half(a.type) ? rates.attention : rates.engine_forward;
}

double attention_seconds(const Kernel& a, const GpuPeaks& gpu, const KernelRates& rates) {
  const bool backward = a.kind == KernelKind::attention_backward;
  const AttentionRates& r = attention_rates(a, backward, rates);
  const double width = computed_width(a, r);
  const double flops = (backward ? 10.0 : 4.0) * width * computed_pairs(a, gpu, r);
  const double share = r.peak * width / (width + r.half_width);
  const bool fused = !a.by_rows && is_half(a.type) && gpu.half > 0;
  const double rate = a.by_rows ? gpu.fp32 * share
                      : fused   ? gpu.half * share
                                : gpu.fp32 * rates.fp32_attention;
  const double slower =
      (is_wide(a) ? r.wide : 1) * (a.drops && !backward ? rates.attention_dropout : 1);
  const double moving =
      fused && r.memory > 0 ? moved_bytes(a, backward) / (r.memory * gpu.memory) : 0;
  return r.seconds + slower * flops / rate + moving;
}

/// What is reached of the datasheet's rate: the shares of it that products take were fitted on an
/// H200, of fp8 on an H100, of whose best products the catalogue has these. Where the best that
/// somebody measured on a GPU is a smaller share (MI300X: 51 %), its products are slower by as
/// much. A format that nobody measured is as the 16-bit one (MI300X: arXiv 2510.27583, about 45 %
/// in fp8, bf16, fp16).
double reached(const Gpu& gpu, PeakRate rate) {
  constexpr double kHalf = 794.5 / 989.5, kFp8 = 1402.6 / 1979.0;
  const auto share = [&](PeakRate of, double best) {
    if (!gpu.achievable[of] || !gpu.peak[of]) return 1.0;
    return std::min(1.0, *gpu.achievable[of] / *gpu.peak[of] / best);
  };
  if (rate == PeakRate::fp8 && gpu.achievable[rate]) return share(rate, kFp8);
  return share(PeakRate::bf16, kHalf);
}

/// Cards whose chip is also built with more power cannot hold its clock through one product after
/// another (Gpu::full_watts): the clock is as the 2/3 power of what is there.
double held_clock(const Gpu& gpu) {
  const double power = gpu.tdp_watts && gpu.full_watts ? *gpu.tdp_watts / *gpu.full_watts : 1;
  return std::min(1.0, std::pow(power, 2.0 / 3));
}

}  // namespace

GpuPeaks datasheet_peaks(const Gpu& gpu, DType compute, bool tf32) {
  GpuPeaks peaks;
  const auto peak = [&](PeakRate rate) { return gpu.peak[rate].value_or(0); };
  peaks.fp32 = peak(PeakRate::fp32);
  const GpuAbilities& can = gpu.abilities;
  const DType narrow = is_half(compute) ? compute : DType::bf16;
  peaks.half = peak(*format_of(narrow).rate);
  peaks.tf32 = tf32 ? peak(PeakRate::tf32) : 0;
  peaks.fp8 = peak(PeakRate::fp8);
  peaks.fp4 = peak(PeakRate::fp4);
  peaks.int8 = peak(PeakRate::int8);
  peaks.memory = gpu.memory_bandwidth.value_or(0);
  peaks.slots =
      peaks.fp32 * static_cast<double>(can.issue_lanes) / static_cast<double>(can.fp32_lanes);
  peaks.alignment = can.product_alignment_bytes;
  peaks.unaligned_batches = can.unaligned_batched_products;
  peaks.multiprocessors =
      static_cast<double>(gpu.multiprocessors.value_or(kTypicalMultiprocessors));
  return peaks;
}

GpuPeaks peaks_of(const Gpu& gpu, DType compute, bool tf32) {
  GpuPeaks peaks = datasheet_peaks(gpu, compute, tf32);
  const DType narrow = is_half(compute) ? compute : DType::bf16;
  const double clock = held_clock(gpu);
  peaks.half *= clock * reached(gpu, *format_of(narrow).rate);
  peaks.tf32 *= clock * reached(gpu, PeakRate::tf32);
  peaks.fp8 *= clock * reached(gpu, PeakRate::fp8);
  peaks.fp4 *= clock;
  peaks.int8 *= clock;
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
      const double rows = kernel.kind == KernelKind::row_reduction
                              ? static_cast<double>(kernel.m) * rates.short_row_slots
                              : 0;
      one = r.seconds + std::max(kernel.bytes / (share * gpu.memory),
                                 std::max(kernel.elements * slots, rows) / gpu.slots);
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
