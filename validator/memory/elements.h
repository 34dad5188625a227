// Storage types of the host back end, the type each computes in, and the way from a DType to them.
#pragma once

#include <Eigen/Core>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "memory/tensor.h"

namespace shardplan::validator::host {

using bf16 = Eigen::bfloat16;
using f16 = Eigen::half;

/// Sums and intermediate results: fp64 for the reference, fp32 for everything else.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Calls f with a value of the storage type of `dtype`.
template <typename F>
void dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    default:
      assert(false && "no arithmetic on this element type");
      std::abort();
  }
}

/// Row statistics, losses and norms: fp64 beside fp64 tensors, fp32 beside all others.
template <typename T>
using Statistic = Wide<T>;

template <typename T>
Wide<T> widen(T x) {
  return static_cast<Wide<T>>(x);
}

template <typename T>
T* optional_data(const Tensor& x) {
  return x.empty() ? nullptr : x.as<T>();
}

}  // namespace shardplan::validator::host
