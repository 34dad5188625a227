// One thread an access: the grid's x is the row, its y the part of the row.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;
constexpr float kTanhScale = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kTanhCubic = 0.044715F;

__device__ float sigmoid(float x) {
  return __fdividef(1.0F, 1.0F + __expf(-x));
}

/// tanh through the exponential: good to a few units of float, and several times faster than tanhf.
__device__ float fast_tanh(float x) {
  const float e = __expf(-2.0F * fabsf(x));
  return copysignf(__fdividef(1.0F - e, 1.0F + e), x);
}

template <Activation kKind>
__device__ float value(float x) {
  if constexpr (kKind == Activation::relu) return fmaxf(x, 0.0F);
  return 0.5F * x * (1.0F + fast_tanh(kTanhScale * x * (1.0F + kTanhCubic * x * x)));
}

template <Activation kKind>
__device__ float slope(float x) {
  if constexpr (kKind == Activation::relu) return x > 0.0F ? 1.0F : 0.0F;
  const float t = fast_tanh(kTanhScale * x * (1.0F + kTanhCubic * x * x));
  const float inner = kTanhScale * (1.0F + 3.0F * kTanhCubic * x * x);
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner;
}

template <class T, int W, Activation kKind>
__global__ void forward_kernel(T* y, const T* x, int width) {
  const int col = (static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x)) * W;
  if (col >= width) return;
  const std::int64_t at = std::int64_t{blockIdx.x} * width + col;
  Pack<T, W> out;
  if constexpr (kKind == Activation::swiglu) {
    const std::int64_t gate_at = std::int64_t{blockIdx.x} * 2 * width + col;
    const Pack<T, W> gate = load<W>(x + gate_at);
    const Pack<T, W> up = load<W>(x + gate_at + width);
#pragma unroll
    for (int i = 0; i < W; ++i) out.set(i, gate[i] * sigmoid(gate[i]) * up[i]);
  } else {
    const Pack<T, W> in = load<W>(x + at);
#pragma unroll
    for (int i = 0; i < W; ++i) out.set(i, value<kKind>(in[i]));
  }
  store<W>(y + at, out);
}

/// x becomes dx.
template <class T, int W, Activation kKind>
__global__ void backward_kernel(T* x, const T* dy, int width) {
  const int col = (static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x)) * W;
  if (col >= width) return;
  const std::int64_t at = std::int64_t{blockIdx.x} * width + col;
  const Pack<T, W> grad = load<W>(dy + at);
  if constexpr (kKind == Activation::swiglu) {
    const std::int64_t gate_at = std::int64_t{blockIdx.x} * 2 * width + col;
    Pack<T, W> gate = load<W>(x + gate_at);
    Pack<T, W> up = load<W>(x + gate_at + width);
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const float s = sigmoid(gate[i]);
      const float silu = gate[i] * s;
      const float dgate = grad[i] * up[i] * (s + silu * (1.0F - s));
      up.set(i, grad[i] * silu);
      gate.set(i, dgate);
    }
    store<W>(x + gate_at, gate);
    store<W>(x + gate_at + width, up);
  } else {
    Pack<T, W> in = load<W>(x + at);
#pragma unroll
    for (int i = 0; i < W; ++i) in.set(i, grad[i] * slope<kKind>(in[i]));
    store<W>(x + at, in);
  }
}

/// Calls body with the kind as a template argument.
template <class Body>
void for_kind(Activation kind, Body&& body) {
  switch (kind) {
    case Activation::swiglu:
      return body.template operator()<Activation::swiglu>();
    case Activation::gelu_tanh:
      return body.template operator()<Activation::gelu_tanh>();
    case Activation::relu:
      return body.template operator()<Activation::relu>();
  }
}

dim3 grid_of(std::int64_t rows, std::int64_t width, int elements) {
  return {static_cast<unsigned>(rows),
          static_cast<unsigned>(ceil_div(width, std::int64_t{kThreads} * elements))};
}

}  // namespace

void activation_forward(const Launch& launch, Activation kind, const Tensor& y, const Tensor& x) {
  for_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        y.width(),
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          for_kind(kind, [&]<Activation kKind>() {
            forward_kernel<T, kW, kKind>
                <<<grid_of(y.rows(), y.width(), kW), kThreads, 0, launch.stream>>>(
                    data<T>(y), data<T>(x), static_cast<int>(y.width()));
          });
        },
        x, y);
  });
  check_launch();
}

void activation_backward(const Launch& launch, Activation kind, const Tensor& x, const Tensor& dy) {
  for_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        dy.width(),
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          for_kind(kind, [&]<Activation kKind>() {
            backward_kernel<T, kW, kKind>
                <<<grid_of(dy.rows(), dy.width(), kW), kThreads, 0, launch.stream>>>(
                    data<T>(x), data<T>(dy), static_cast<int>(dy.width()));
          });
        },
        x, dy);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
