// RMS norm over each query and key head: as many lanes a head as have an access of 128 bits each,
// or, where heads are not such, a warp a head with pairs of elements a lane.
#include <bit>

#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/launchers.h"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPairs = 4;  // a lane holds at most these: heads of 256 elements
constexpr int kBackwardBlocks = 4 * 132;

template <class T>
struct HeadNormArgs {
  T* out;  // of the forward pass; of the backward pass, the gradient in place
  float* rstd;
  const T* qkv;
  const T* q_weight;
  const T* k_weight;
  float* partial;  // (blocks, 2 * head_dim): the gradients of q_weight, then of k_weight
  int rows;
  int query_heads;
  int key_heads;
  int head_dim;
  int lanes;            // of a head: a power of two
  std::int64_t stride;  // of a token
  float epsilon;
};

/// The part of a head that one lane has: P accesses of W elements.
template <class T, int W, int P>
struct Part {
  __device__ explicit Part(const HeadNormArgs<T>& args)
      : a(args), lane(static_cast<int>(threadIdx.x) % args.lanes) {}

  __device__ int column(int access) const { return W * (access * a.lanes + lane); }
  __device__ bool has(int access) const { return column(access) < a.head_dim; }
  __device__ Pack<T, W> read(const T* head, int access) const {
    return has(access) ? load<W>(head + column(access)) : zero_pack<T, W>();
  }
  __device__ void write(T* head, int access, const Pack<T, W>& pack) const {
    if (has(access)) store<W>(head + column(access), pack);
  }
  /// The sum over the head's lanes.
  __device__ float sum(float value) const {
    for (int offset = a.lanes / 2; offset > 0; offset /= 2)
      value += __shfl_xor_sync(0xffffffffU, value, offset);
    return value;
  }

  const HeadNormArgs<T>& a;
  int lane;
};

template <class T, int W, int P>
__global__ void head_norm_forward_kernel(HeadNormArgs<T> a) {
  const Part<T, W, P> part(a);
  const int normed = a.query_heads + a.key_heads;
  const int heads = normed + a.key_heads;  // the values are copied
  const int item = static_cast<int>(blockIdx.x * (kThreads / a.lanes) + threadIdx.x / a.lanes);
  const bool live = item < a.rows * heads;
  const int row = live ? item / heads : 0;
  const int head = live ? item - row * heads : 0;
  const std::int64_t begin = row * a.stride + std::int64_t{head} * a.head_dim;
  Pack<T, W> x[P];
  float squares = 0.0F;
#pragma unroll
  for (int p = 0; p < P; ++p) {
    x[p] = part.read(a.qkv + begin, p);
#pragma unroll
    for (int e = 0; e < W; ++e) squares += x[p][e] * x[p][e];
  }
  squares = part.sum(squares);
  if (!live) return;
  if (head < normed) {
    const float rstd = rsqrtf(squares / static_cast<float>(a.head_dim) + a.epsilon);
    const T* weights = head < a.query_heads ? a.q_weight : a.k_weight;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const Pack<T, W> weight = part.read(weights, p);
#pragma unroll
      for (int e = 0; e < W; ++e) x[p].set(e, x[p][e] * rstd * weight[e]);
    }
    if (part.lane == 0) a.rstd[std::int64_t{row} * normed + head] = rstd;
  }
#pragma unroll
  for (int p = 0; p < P; ++p) part.write(a.out + begin, p, x[p]);
}

template <class T, int W, int P>
__global__ void head_norm_backward_kernel(HeadNormArgs<T> a) {
  extern __shared__ float sums[];  // (2, head_dim)
  const Part<T, W, P> part(a);
  const int normed = a.query_heads + a.key_heads;
  const int groups = kThreads / a.lanes;  // a head each
  const int group = static_cast<int>(threadIdx.x) / a.lanes;
  float dweight[2][P][W] = {};  // of queries, of keys
  const int step = static_cast<int>(gridDim.x) * groups;
  for (int first = static_cast<int>(blockIdx.x) * groups; first < a.rows * normed; first += step) {
    const int item = first + group;
    const bool live = item < a.rows * normed;
    const int row = live ? item / normed : 0;
    const int head = live ? item - row * normed : 0;
    const std::int64_t begin = row * a.stride + std::int64_t{head} * a.head_dim;
    const float rstd = live ? a.rstd[item] : 0.0F;  // of none: adds zeros
    const bool is_query = head < a.query_heads;
    const T* weights = is_query ? a.q_weight : a.k_weight;
    Pack<T, W> x[P], grad[P], weight[P];
    float along = 0.0F;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      x[p] = part.read(a.qkv + begin, p);
      grad[p] = part.read(a.out + begin, p);
      weight[p] = part.read(weights, p);
#pragma unroll
      for (int e = 0; e < W; ++e) {
        const float slope = grad[p][e] * x[p][e] * rstd;
        along += weight[p][e] * slope;
        dweight[0][p][e] += is_query ? slope : 0.0F;
        dweight[1][p][e] += is_query ? 0.0F : slope;
      }
    }
    along = part.sum(along) / static_cast<float>(a.head_dim);
    if (!live) continue;
#pragma unroll
    for (int p = 0; p < P; ++p) {
#pragma unroll
      for (int e = 0; e < W; ++e)
        grad[p].set(e, rstd * (weight[p][e] * grad[p][e] - x[p][e] * rstd * along));
      part.write(a.out + begin, p, grad[p]);
    }
  }
  for (int turn = 0; turn < groups; ++turn) {  // in order: the sum does not depend on timing
    if (turn == group) {
#pragma unroll
      for (int p = 0; p < P; ++p) {
        if (!part.has(p)) continue;
#pragma unroll
        for (int e = 0; e < 2 * W; ++e) {
          float& sum = sums[e / W * a.head_dim + part.column(p) + e % W];
          sum = (turn == 0 ? 0.0F : sum) + dweight[e / W][p][e % W];
        }
      }
    }
    __syncthreads();
  }
  for (int i = static_cast<int>(threadIdx.x); i < 2 * a.head_dim; i += kThreads) {
    a.partial[std::int64_t{blockIdx.x} * 2 * a.head_dim + i] = sums[i];
  }
}

/// Calls body with the elements of an access, how many accesses a lane has, and a head's lanes.
template <class T, class Body, class... Tensors>
void for_parts(const Heads& heads, Body&& body, const Tensors&... tensors) {
  const auto head_dim = static_cast<unsigned>(heads.head_dim);
  const unsigned lanes = head_dim / kWidth<T>;
  const bool aligned = head_dim % kWidth<T> == 0 && ((tensors.address % 16 == 0) && ...);
  if (aligned && std::has_single_bit(lanes) && lanes <= kWarp) {
    body(Width<kWidth<T>>{}, Width<1>{}, static_cast<int>(lanes));
  } else {
    body(Width<2>{}, Width<kPairs>{}, kWarp);
  }
}

template <class T>
HeadNormArgs<T> args_of(const Heads& heads, const Tensor& out, const Tensor& rstd,
                        const Tensor& qkv, const Tensor& q_weight, const Tensor& k_weight) {
  if (heads.head_dim % 2 != 0 || heads.head_dim > 2 * kPairs * kWarp) {
    throw DeviceError("head norm: no kernel for heads of " + std::to_string(heads.head_dim) +
                      " elements");
  }
  return {.out = data<T>(out),
          .rstd = data<float>(rstd),
          .qkv = data<T>(qkv),
          .q_weight = data<T>(q_weight),
          .k_weight = data<T>(k_weight),
          .partial = nullptr,
          .rows = static_cast<int>(heads.rows()),
          .query_heads = static_cast<int>(heads.query_heads),
          .key_heads = static_cast<int>(heads.key_value_heads),
          .head_dim = static_cast<int>(heads.head_dim),
          .lanes = kWarp,
          .stride = heads.packed_width(),
          .epsilon = 0.0F};
}

}  // namespace

void head_norm_forward(const Launch& launch, const HeadNormForward& o) {
  for_dtype(o.qkv.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto args = args_of<T>(o.heads, o.out, o.rstd, o.qkv, o.q_weight, o.k_weight);
    args.epsilon = o.epsilon;
    const std::int64_t heads = o.heads.rows() * (o.heads.query_heads + 2 * o.heads.key_value_heads);
    for_parts<T>(
        o.heads,
        [&](auto elements, auto accesses, int lanes) {
          args.lanes = lanes;
          head_norm_forward_kernel<T, decltype(elements)::value, decltype(accesses)::value>
              <<<static_cast<unsigned>(ceil_div(heads, kThreads / lanes)), kThreads, 0,
                 launch.stream>>>(args);
        },
        o.out, o.qkv, o.q_weight, o.k_weight);
  });
  check_launch();
}

void head_norm_backward(const Launch& launch, const HeadNormBackward& o) {
  for_dtype(o.qkv.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto args = args_of<T>(o.heads, o.dqkv, o.rstd, o.qkv, o.q_weight, o.k_weight);
    const auto blocks = static_cast<int>(std::min<std::int64_t>(args.rows, kBackwardBlocks));
    const std::int64_t width = 2 * o.heads.head_dim;
    args.partial = launch.scratch<float>(blocks * width);
    const auto shared = static_cast<std::size_t>(width) * sizeof(float);
    for_parts<T>(
        o.heads,
        [&](auto elements, auto accesses, int lanes) {
          args.lanes = lanes;
          head_norm_backward_kernel<T, decltype(elements)::value, decltype(accesses)::value>
              <<<blocks, kThreads, shared, launch.stream>>>(args);
        },
        o.dqkv, o.qkv, o.q_weight, o.k_weight);
    check_launch();
    add_column_sums<T>(launch, args.partial, blocks, width, o.dq_weight, o.accumulate_weights);
    add_column_sums<T>(launch, args.partial + o.heads.head_dim, blocks, width, o.dk_weight,
                       o.accumulate_weights);
  });
}

std::int64_t head_norm_workspace(std::int64_t head_dim) {
  return kBackwardBlocks * 2 * head_dim * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace shardplan::validator::cuda
