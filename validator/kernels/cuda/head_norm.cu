// RMS norm over each query and key head: a warp a head, pairs of elements a lane.
#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/launchers.h"

namespace shardplan::validator::cuda {
namespace {

constexpr int kWarps = 4;  // of a block
constexpr int kThreads = kWarps * kWarp;
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
  std::int64_t rows;
  int query_heads;
  int key_heads;
  int head_dim;
  int stride;  // of a token
  float epsilon;
};

__device__ int column(int pair) {
  return 2 * (pair * kWarp + static_cast<int>(threadIdx.x) % kWarp);
}

template <class T>
__global__ void head_norm_forward_kernel(HeadNormArgs<T> a) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int normed = a.query_heads + a.key_heads;
  const int heads = normed + a.key_heads;  // the values are copied
  const std::int64_t token = std::int64_t{blockIdx.x} * a.stride;
  for (int head = warp; head < heads; head += kWarps) {
    const std::int64_t begin = token + std::int64_t{head} * a.head_dim;
    Pack<T, 2> x[kPairs];
    float squares = 0.0F;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      if (column(p) >= a.head_dim) continue;
      x[p] = load<2>(a.qkv + begin + column(p));
      squares += x[p][0] * x[p][0] + x[p][1] * x[p][1];
    }
    squares = warp_reduce(squares, Sum{});
    const float rstd = rsqrtf(squares / static_cast<float>(a.head_dim) + a.epsilon);
    const T* weights = head < a.query_heads ? a.q_weight : a.k_weight;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      if (column(p) >= a.head_dim) continue;
      if (head < normed) {
        const Pack<T, 2> weight = load<2>(weights + column(p));
        x[p].set(0, x[p][0] * rstd * weight[0]);
        x[p].set(1, x[p][1] * rstd * weight[1]);
      }
      store<2>(a.out + begin + column(p), x[p]);
    }
    if (head < normed && threadIdx.x % kWarp == 0) {
      a.rstd[std::int64_t{blockIdx.x} * normed + head] = rstd;
    }
  }
}

template <class T>
__global__ void head_norm_backward_kernel(HeadNormArgs<T> a) {
  extern __shared__ float sums[];  // (2, head_dim)
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int normed = a.query_heads + a.key_heads;
  float dweight[2][kPairs][2] = {};  // of queries, of keys
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    for (int head = warp; head < normed; head += kWarps) {
      const std::int64_t begin = row * a.stride + std::int64_t{head} * a.head_dim;
      const float rstd = a.rstd[row * normed + head];
      const bool is_query = head < a.query_heads;
      const T* weights = is_query ? a.q_weight : a.k_weight;
      Pack<T, 2> x[kPairs];
      Pack<T, 2> grad[kPairs];
      float along = 0.0F;
#pragma unroll
      for (int p = 0; p < kPairs; ++p) {
        if (column(p) >= a.head_dim) continue;
        x[p] = load<2>(a.qkv + begin + column(p));
        grad[p] = load<2>(a.out + begin + column(p));
        const Pack<T, 2> weight = load<2>(weights + column(p));
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float x_hat = x[p][e] * rstd;
          along += weight[e] * grad[p][e] * x_hat;
          const float part = grad[p][e] * x_hat;
          dweight[0][p][e] += is_query ? part : 0.0F;
          dweight[1][p][e] += is_query ? 0.0F : part;
        }
      }
      along = warp_reduce(along, Sum{}) / static_cast<float>(a.head_dim);
#pragma unroll
      for (int p = 0; p < kPairs; ++p) {
        if (column(p) >= a.head_dim) continue;
        const Pack<T, 2> weight = load<2>(weights + column(p));
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          grad[p].set(e, rstd * (weight[e] * grad[p][e] - x[p][e] * rstd * along));
        }
        store<2>(a.out + begin + column(p), grad[p]);
      }
    }
  }
  for (int turn = 0; turn < kWarps; ++turn) {  // in order: the sum does not depend on timing
    if (turn == warp) {
#pragma unroll
      for (int p = 0; p < kPairs; ++p) {
        if (column(p) >= a.head_dim) continue;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& sum = sums[e / 2 * a.head_dim + column(p) + e % 2];
          sum = (turn == 0 ? 0.0F : sum) + dweight[e / 2][p][e % 2];
        }
      }
    }
    __syncthreads();
  }
  for (int i = static_cast<int>(threadIdx.x); i < 2 * a.head_dim; i += kThreads) {
    a.partial[std::int64_t{blockIdx.x} * 2 * a.head_dim + i] = sums[i];
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
          .rows = heads.rows(),
          .query_heads = static_cast<int>(heads.query_heads),
          .key_heads = static_cast<int>(heads.key_value_heads),
          .head_dim = static_cast<int>(heads.head_dim),
          .stride = static_cast<int>(heads.packed_width()),
          .epsilon = 0.0F};
}

}  // namespace

void head_norm_forward(const Launch& launch, const HeadNormForward& o) {
  for_dtype(o.qkv.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto args = args_of<T>(o.heads, o.out, o.rstd, o.qkv, o.q_weight, o.k_weight);
    args.epsilon = o.epsilon;
    head_norm_forward_kernel<<<static_cast<unsigned>(args.rows), kThreads, 0, launch.stream>>>(
        args);
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
    head_norm_backward_kernel<<<blocks, kThreads, shared, launch.stream>>>(args);
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
