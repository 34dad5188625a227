#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 128;

/// A block turns the query and key heads of one token. Neighbouring threads take neighbouring pairs
/// of one head; the token's angles stay in the cache for the next heads.
template <class T, int W>
__global__ void rotary_kernel(T* qkv, const float* table, int heads, int head_dim, int stride,
                              std::int64_t sequence, float sign) {
  const int half = head_dim / 2;
  const int packs = half / W;
  T* token = qkv + std::int64_t{blockIdx.x} * stride;
  const float* cosines = table + blockIdx.x % sequence * head_dim;
  const float* sines = cosines + half;
  for (int i = static_cast<int>(threadIdx.x); i < heads * packs; i += kThreads) {
    const int head = i / packs;
    const int col = (i - head * packs) * W;
    T* low_at = token + head * head_dim + col;
    T* high_at = low_at + half;
    Pack<T, W> low = load<W>(low_at);
    Pack<T, W> high = load<W>(high_at);
#pragma unroll
    for (int e = 0; e < W; ++e) {
      const float c = cosines[col + e];
      const float s = sign * sines[col + e];
      const float turned = low[e] * c - high[e] * s;
      high.set(e, high[e] * c + low[e] * s);
      low.set(e, turned);
    }
    store<W>(low_at, low);
    store<W>(high_at, high);
  }
}

}  // namespace

void rotary(const Launch& launch, const Tensor& qkv, const Tensor& table, const Heads& heads,
            bool inverse) {
  const auto turned = static_cast<int>(heads.query_heads + heads.key_value_heads);
  for_dtype(qkv.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        heads.head_dim / 2,
        [&](auto width) {
          rotary_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(heads.rows()), kThreads, 0, launch.stream>>>(
                  data<T>(qkv), data<float>(table), turned, static_cast<int>(heads.head_dim),
                  static_cast<int>(heads.packed_width()), heads.sequence, inverse ? -1.0F : 1.0F);
        },
        qkv);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
