#include "frameworks/deepspeed/gradient_work.h"

#include <algorithm>
#include <utility>

namespace shardplan {
namespace {

constexpr double kDouble = 8, kWide = 4;  ///< bytes of an element

DType type_of(std::int64_t bytes) {
  return bytes == 2 ? DType::bf16 : DType::f32;
}

/// `bytes` an element, in `launches` for each tensor, which move nothing but for the first.
class Loops {
 public:
  Loops(const Engine& e, const GradientList& over) : type_(type_of(e.b)), over_(over) {}

  Loops& each(KernelKind kind, double bytes) {
    return add(kind, bytes, static_cast<std::int32_t>(over_.tensors));
  }
  Loops& once(KernelKind kind, double bytes) { return add(kind, bytes, 1); }
  /// Kernels over a number of each tensor.
  Loops& numbers(std::int64_t launches) {
    Kernel k;
    k.kind = KernelKind::elementwise;
    k.issue = Issue::python;
    k.calls = static_cast<std::int32_t>(launches * over_.tensors);
    k.bytes = 2 * kWide;
    k.elements = 1;
    kernels_.push_back(k);
    return *this;
  }
  /// Calls for each tensor that start nothing: views, and casts to the type it has.
  Loops& views(std::int64_t calls) {
    Kernel k;
    k.issue = Issue::python;
    k.calls = static_cast<std::int32_t>(calls * over_.tensors);
    kernels_.push_back(k);
    return *this;
  }
  std::vector<Kernel> take() {
    if (over_.tensors == 0) kernels_.clear();
    return std::move(kernels_);
  }

 private:
  Loops& add(KernelKind kind, double bytes, std::int32_t calls) {
    const double elements = static_cast<double>(over_.elements) / std::max(1, calls);
    Kernel k;
    k.kind = kind;
    k.issue = Issue::python;
    k.type = type_;
    k.calls = calls;
    k.bytes = bytes * elements;
    k.elements = elements;
    kernels_.push_back(k);
    return *this;
  }

  DType type_;
  GradientList over_;
  std::vector<Kernel> kernels_;
};

double narrow(const Engine& e) {
  return static_cast<double>(e.b);
}

}  // namespace

std::vector<Kernel> bucket_copies(const Engine& e, const GradientList& gradients) {
  return Loops(e, gradients).each(KernelKind::elementwise, 2 * narrow(e)).take();
}

std::vector<Kernel> flush_kernels(const Engine& e, const GradientList& sent) {
  const GradientList own{std::max<std::int64_t>(1, sent.tensors / e.ranks),
                         sent.elements / e.ranks};
  std::vector<Kernel> kernels = Loops(e, sent).once(KernelKind::elementwise, 2 * narrow(e)).take();
  Loops copies(e, own);
  if (e.ranks > 1) copies.once(KernelKind::elementwise, 2 * narrow(e));
  for (const Kernel& k : copies.each(KernelKind::elementwise, 2 * narrow(e)).take())
    kernels.push_back(k);
  return kernels;
}

std::vector<Kernel> accumulation_kernels(const Engine& e, const GradientList& gradients) {
  return Loops(e, gradients)
      .each(KernelKind::strided, narrow(e) + kWide)
      .each(KernelKind::elementwise, 3 * kWide)
      .take();
}

/// Since 0.19.6 the largest and the least number, and whether each is finite (has_inf_or_nan);
/// before, an fp32 copy and masks of it.
std::vector<Kernel> overflow_kernels(const Engine& e, const GradientList& own) {
  if (!e.checks_overflow) return {};
  Loops loops(e, own);
  if (e.overflow_copies)
    return loops.each(KernelKind::strided, narrow(e) + kWide)
        .each(KernelKind::elementwise, kWide + 1)
        .each(KernelKind::elementwise, kWide + 1)
        .each(KernelKind::elementwise, 3)
        .each(KernelKind::strided, 1 + kWide)
        .each(KernelKind::row_reduction, kWide)
        .numbers(1)
        .take();
  return loops.each(KernelKind::row_reduction, narrow(e))
      .each(KernelKind::row_reduction, narrow(e))
      .numbers(11)
      .take();
}

std::vector<Kernel> flat_gradient_kernels(const Engine& e, const GradientList& own) {
  Loops loops(e, own);
  loops.each(KernelKind::strided, narrow(e) + kDouble).each(KernelKind::row_reduction, kDouble);
  loops.views(5);
  loops.once(KernelKind::concatenate, 2 * narrow(e));
  if (e.m > e.b) loops.once(KernelKind::strided, narrow(e) + kWide);
  return loops.once(KernelKind::elementwise, 2 * static_cast<double>(e.m)).take();
}

std::vector<Kernel> parameter_casts(const Engine& e, const GradientList& own) {
  return Loops(e, own).once(KernelKind::elementwise, static_cast<double>(e.m) + narrow(e)).take();
}

std::vector<Kernel> fp32_gradient_kernels(const GradientList& own) {
  Engine wide;
  wide.b = 4;
  return Loops(wide, own)
      .each(KernelKind::row_reduction, kWide)
      .numbers(3)
      .views(5)
      .each(KernelKind::elementwise, 2 * kWide)
      .take();
}

std::vector<Kernel> apart_gradient_kernels(const Engine& e, const GradientList& all) {
  return Loops(e, all)
      .each(KernelKind::strided, narrow(e) + kWide)
      .each(KernelKind::row_reduction, kWide)
      .numbers(2)
      .each(KernelKind::strided, narrow(e) + kWide)
      .each(KernelKind::elementwise, 2 * kWide)
      .take();
}

std::vector<Kernel> whole_gradient_kernels(const Engine& e, const GradientList& all) {
  return Loops(e, all)
      .each(KernelKind::strided, narrow(e) + kWide)
      .once(KernelKind::elementwise, 2 * kWide)
      .once(KernelKind::row_reduction, kWide)
      .once(KernelKind::elementwise, 2 * kWide)
      .take();
}

}  // namespace shardplan
