#include <cmath>
#include <numbers>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

template <typename W>
W sigmoid(W x) {
  return 1 / (1 + std::exp(-x));
}

/// 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
template <typename W>
struct GeluTanh {
  static constexpr W kScale = std::numbers::sqrt2_v<W> * std::numbers::inv_sqrtpi_v<W>;
  static constexpr W kCubic = static_cast<W>(0.044715);
  static W value(W x) { return x / 2 * (1 + std::tanh(kScale * (x + kCubic * x * x * x))); }
  static W slope(W x) {
    const W t = std::tanh(kScale * (x + kCubic * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * kScale * (1 + 3 * kCubic * x * x);
  }
};

template <typename T>
void forward(Activation kind, const Tensor& y, const Tensor& x) {
  using W = Wide<T>;
  const std::int64_t width = y.width();
  const T* in = x.as<T>();
  T* out = y.as<T>();
  for (std::int64_t i = 0; i < y.numel(); ++i) switch (kind) {
      case Activation::swiglu: {
        const T* row = in + i / width * 2 * width;
        const W gate = widen(row[i % width]), up = widen(row[width + i % width]);
        out[i] = static_cast<T>(gate * sigmoid(gate) * up);
        break;
      }
      case Activation::gelu_tanh:
        out[i] = static_cast<T>(GeluTanh<W>::value(widen(in[i])));
        break;
      case Activation::relu:
        out[i] = widen(in[i]) > 0 ? in[i] : T(0);
        break;
    }
}

template <typename T>
void backward(Activation kind, const Tensor& x, const Tensor& dy) {
  using W = Wide<T>;
  const std::int64_t width = dy.width();
  T* in = x.as<T>();
  const T* d = dy.as<T>();
  for (std::int64_t i = 0; i < dy.numel(); ++i) switch (kind) {
      case Activation::swiglu: {
        T* row = in + i / width * 2 * width;
        const W gate = widen(row[i % width]), up = widen(row[width + i % width]);
        const W s = sigmoid(gate);
        row[i % width] = static_cast<T>(widen(d[i]) * up * s * (1 + gate * (1 - s)));
        row[width + i % width] = static_cast<T>(widen(d[i]) * gate * s);
        break;
      }
      case Activation::gelu_tanh:
        in[i] = static_cast<T>(widen(d[i]) * GeluTanh<W>::slope(widen(in[i])));
        break;
      case Activation::relu:
        in[i] = widen(in[i]) > 0 ? d[i] : T(0);
        break;
    }
}

}  // namespace

void activation_forward(Activation kind, const Tensor& y, const Tensor& x) {
  dispatch(y.dtype, [&](auto zero) { forward<decltype(zero)>(kind, y, x); });
}

void activation_backward(Activation kind, const Tensor& x, const Tensor& dy) {
  dispatch(x.dtype, [&](auto zero) { backward<decltype(zero)>(kind, x, dy); });
}

}  // namespace shardplan::validator::host
