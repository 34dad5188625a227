// Products, attention and operations that move bytes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "calibrate/calibrate.h"
#include "calibrate/fit.h"
#include "timing/kernel_time.h"
#include "timing/product_time.h"

namespace shardplan {
namespace {

using Rows = std::vector<const KernelRow*>;

Rows rows_where(const std::vector<KernelRow>& all,
                const std::function<bool(const KernelRow&)>& wanted) {
  Rows rows;
  for (const KernelRow& row : all)
    if (row.seconds > 0 && wanted(row)) rows.push_back(&row);
  return rows;
}

bool is_tf32(const KernelRow& r) {
  return multiplies_at(r.kernel.type, PeakRate::tf32);
}

/// Where fits of MemoryRate::slots begin: too few to matter beside bytes, about even with them,
/// and enough for 16-bit Adam (389 on an H200).
const std::vector<double> kSlotStarts{30, 200, 400};

/// `slots`: one of the parameters, for which the fit begins at each of kSlotStarts.
void fit_group(const std::string& group, const Rows& rows, const Gpu& gpu, CalibrationFit& fit,
               const std::vector<double*>& parameters, double* slots = nullptr) {
  const auto logarithms = [&] {
    std::vector<double> all;
    for (const KernelRow* row : rows)
      all.push_back(
          std::log(kernel_seconds(row->kernel, peaks_of(gpu, row->kernel.type, is_tf32(*row)),
                                  fit.rates.kernels) /
                   row->seconds));
    return all;
  };
  if (rows.empty()) return;
  constexpr double kBegin = 0.5;  // 0 has no logarithm to begin at
  for (double* parameter : parameters)
    if (*parameter == 0) *parameter = kBegin;
  if (slots != nullptr)
    fit_positive_from(kSlotStarts, *slots, parameters, logarithms);
  else
    fit_positive(parameters, logarithms);
  fit.quality.push_back({group, rows.size(), mean_error(logarithms())});
}

bool is_product(const KernelRow& r) {
  return r.kernel.kind == KernelKind::product;
}
bool is_attention(const KernelRow& r) {
  return r.kernel.kind == KernelKind::attention || r.kernel.kind == KernelKind::attention_backward;
}
bool is_half(const KernelRow& r) {
  return size_of(r.kernel.type) == 2;
}
bool is_aligned(const KernelRow& r) {
  return r.kernel.m % 8 == 0 && r.kernel.n % 8 == 0 && r.kernel.k % 8 == 0;
}
bool is_odd(const KernelRow& r) {
  return r.kernel.m % 2 != 0 || r.kernel.n % 2 != 0 || r.kernel.k % 2 != 0;
}

/// Calls that were timed with their launches say something only when they take longer than those.
bool tells(const KernelRow& r) {
  constexpr double kLaunches = 300e-6;
  return r.graphed || r.seconds > kLaunches;
}

}  // namespace

void fit_products(const std::vector<KernelRow>& rows, const Gpu& gpu, CalibrationFit& fit) {
  ProductRates& p = fit.rates.kernels.product;
  fit_group(
      "products, 16 bits",
      rows_where(rows, [](const auto& r) { return is_product(r) && is_half(r) && is_aligned(r); }),
      gpu, fit,
      {&p.seconds, &p.wave_seconds, &p.tile[0], &p.tile[1], &p.tile[2], &p.memory, &p.throttling,
       &p.reduction});
  const auto unaligned = [&](bool odd) {
    return rows_where(rows, [odd](const auto& r) {
      return is_product(r) && is_half(r) && !is_aligned(r) && is_odd(r) == odd;
    });
  };
  fit_group("products, even widths that 8 does not divide", unaligned(false), gpu, fit,
            {&p.unaligned});
  fit_group("products, odd widths", unaligned(true), gpu, fit, {&p.odd});
  fit_group(
      "products, fp32",
      rows_where(rows, [](const auto& r) { return is_product(r) && r.kernel.type == DType::f32; }),
      gpu, fit, {&p.fp32});
  const auto in_tf32 = [&](bool summed) {
    return rows_where(rows, [summed](const auto& r) {
      return is_product(r) && is_tf32(r) && is_aligned(r) && r.kernel.sums_rows == summed;
    });
  };
  fit_group("products, TF32", in_tf32(false), gpu, fit, {&p.tf32});
  fit_group("products, TF32, sums of rows", in_tf32(true), gpu, fit, {&p.tf32_summed});
}

void fit_attention(const std::vector<KernelRow>& rows, const Gpu& gpu, CalibrationFit& fit) {
  const auto group = [&](const std::string& name, const std::function<bool(const Kernel&)>& wanted,
                         std::vector<double*> parameters) {
    fit_group("attention, " + name,
              rows_where(rows,
                         [&](const auto& row) {
                           return is_attention(row) && wanted(row.kernel) && tells(row);
                         }),
              gpu, fit, std::move(parameters));
  };
  const auto flash = [](KernelKind kind) {
    return [kind](const Kernel& k) {
      return k.kind == kind && size_of(k.type) == 2 && !k.masked && !k.by_rows;
    };
  };
  const auto masked = [](KernelKind kind) {
    return [kind](const Kernel& k) { return k.kind == kind && size_of(k.type) == 2 && k.masked; };
  };
  const auto by_rows = [](KernelKind kind) {
    return [kind](const Kernel& k) { return k.kind == kind && k.by_rows; };
  };
  KernelRates& k = fit.rates.kernels;
  constexpr KernelKind kForward = KernelKind::attention;
  constexpr KernelKind kBackward = KernelKind::attention_backward;
  const auto fused = [](AttentionRates& r) {
    return std::vector<double*>{&r.peak, &r.half_width, &r.seconds, &r.diagonal,
                                &r.wide, &r.tail,       &r.memory};
  };
  group("forward", flash(kForward), fused(k.attention));
  group("backward", flash(kBackward), fused(k.attention_backward));
  group(
      "forward with a mask", masked(kForward),
      {&k.masked.peak, &k.masked.half_width, &k.masked.seconds, &k.masked.wide, &k.masked.memory});
  group("backward with a mask", masked(kBackward),
        {&k.masked_backward.peak, &k.masked_backward.half_width, &k.masked_backward.wide,
         &k.masked_backward.memory});
  group("forward by rows", by_rows(kForward), {&k.by_rows.peak, &k.by_rows.half_width});
  group("backward by rows", by_rows(kBackward),
        {&k.by_rows_backward.peak, &k.by_rows_backward.half_width});
  group("fp32", [](const Kernel& a) { return size_of(a.type) != 2 && !a.by_rows; },
        {&k.fp32_attention});
}

void fit_memory(const std::vector<KernelRow>& rows, const Gpu& gpu, CalibrationFit& fit) {
  const double cache = fit.rates.kernels.cache_bytes;
  for (auto k = static_cast<std::size_t>(KernelKind::elementwise); k < kKernelKinds; ++k) {
    const auto kind = static_cast<KernelKind>(k);
    const Rows group =
        rows_where(rows, [&](const auto& r) { return r.kernel.kind == kind && tells(r); });
    const bool cached = std::any_of(group.begin(), group.end(),
                                    [&](const KernelRow* r) { return r->kernel.bytes < cache; });
    MemoryRate& rate = fit.rates.kernels.memory[k];
    std::vector<double*> parameters{&rate.bandwidth};
    if (group.size() > 3 && kind != KernelKind::multi_tensor) parameters.push_back(&rate.seconds);
    if (cached && group.size() > 3) parameters.push_back(&rate.cached);
    // Rates of elements show where narrow and wide types take about the same time.
    const bool both_types = std::any_of(group.begin(), group.end(), [&](const KernelRow* r) {
      return r->kernel.type != group.front()->kernel.type;
    });
    const bool slots = both_types && group.size() > 8;
    if (slots) parameters.push_back(&rate.slots);
    fit_group(std::string(name_of(kind)), group, gpu, fit, parameters,
              slots ? &rate.slots : nullptr);
  }
}

}  // namespace shardplan
