// Flash attention, forward: a block holds 128 queries of one head and walks over the keys they may
// see in tiles of 64, the next tile on its way while one is worked on. Each warp owns 16 queries:
// their scores, maxima and sums never leave its registers.
#include "kernels/cuda/attention_layout.h"
#include "kernels/cuda/tiles.cuh"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kQueries = kWarps * 16;
constexpr int kKeys = 64;
constexpr int kKeyTiles = kKeys / 8;  // 16 × 8 products of a warp's scores

template <class T>
struct ForwardArgs {
  HeadLayout layout;
  const T* queries;
  const T* keys;
  T* out;
  float* lse;
};

template <int kD>
constexpr int kSharedElements = (kQueries + 4 * kKeys) * kD;

template <class T, int kD>
__global__ void __launch_bounds__(kThreads) flash_forward_kernel(ForwardArgs<T> a) {
  extern __shared__ __align__(128) char shared[];
  T* q_tile = reinterpret_cast<T*>(shared);
  T* k_tiles = q_tile + kQueries * kD;  // two, in turn
  T* v_tiles = k_tiles + 2 * kKeys * kD;
  const HeadLayout& layout = a.layout;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  // The last queries see the most keys: they begin first.
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  const T* keys = a.keys + layout.key(batch, head / layout.group());
  const T* values = a.keys + layout.value(batch, head / layout.group());
  const int seen = min(layout.last_key(first_query + kQueries - 1) + 1, layout.keys);
  const int tiles = (seen + kKeys - 1) / kKeys;

  const auto copy_keys = [&](int tile) {
    const std::int64_t begin = std::int64_t{tile} * kKeys * layout.key_row;
    const int valid = layout.keys - tile * kKeys;
    const int slot = tile % 2 * kKeys * kD;
    copy_tile<kD, kKeys, kThreads>(k_tiles + slot, keys + begin, layout.key_row, valid,
                                   layout.head_dim);
    copy_tile<kD, kKeys, kThreads>(v_tiles + slot, values + begin, layout.key_row, valid,
                                   layout.head_dim);
    commit_copies();
  };
  copy_tile<kD, kQueries, kThreads>(
      q_tile, a.queries + layout.query(batch, head) + std::int64_t{first_query} * layout.packed,
      layout.packed, layout.queries - first_query, layout.head_dim);
  copy_keys(0);

  float out[kD / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY};  // of rows lane / 4 and lane / 4 + 8, times log2(e)
  float total[2] = {0.0F, 0.0F};
  const float scale = layout.scale * kLog2E;
  const int row = first_query + warp * 16 + lane / 4;

  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      copy_keys(tile + 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    const T* k_tile = k_tiles + tile % 2 * kKeys * kD;
    const T* v_tile = v_tiles + tile % 2 * kKeys * kD;

    float scores[kKeyTiles][4] = {};
#pragma unroll
    for (int step = 0; step < kD / 16; ++step) {
      Fragment q;
      load_left<kD>(q, q_tile, warp * 16, step);
#pragma unroll
      for (int n = 0; n < kKeyTiles; n += 2) {
        Fragment k;
        load_right_rows<kD>(k, k_tile, n * 8, step);
        multiply_add<T>(scores[n], q, k[0], k[1]);
        multiply_add<T>(scores[n + 1], q, k[2], k[3]);
      }
    }
    const int first_key = tile * kKeys;
    // The diagonal, or the end of the keys, crosses this tile.
    if (first_key + kKeys - 1 > layout.last_key(first_query + warp * 16)) {
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = first_key + n * 8 + lane % 4 * 2 + i % 2;
          if (key > layout.last_key(row + i / 2 * 8)) scores[n][i] = -INFINITY;
        }
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float tile_largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        tile_largest = fmaxf(tile_largest, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      }
      tile_largest = fmaxf(tile_largest, __shfl_xor_sync(0xffffffffU, tile_largest, 1));
      tile_largest = fmaxf(tile_largest, __shfl_xor_sync(0xffffffffU, tile_largest, 2));
      const float now = fmaxf(largest[half], tile_largest * scale);
      // A row without a key yet keeps its zeros: subtracting -inf from -inf would make NaNs.
      const float base = now == -INFINITY ? 0.0F : now;
      const float shrink = fast_exp2(largest[half] - base);
      largest[half] = now;
      total[half] *= shrink;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        scores[n][2 * half] = fast_exp2(scores[n][2 * half] * scale - base);
        scores[n][2 * half + 1] = fast_exp2(scores[n][2 * half + 1] * scale - base);
        total[half] += scores[n][2 * half] + scores[n][2 * half + 1];
      }
#pragma unroll
      for (int d = 0; d < kD / 8; ++d) {
        out[d][2 * half] *= shrink;
        out[d][2 * half + 1] *= shrink;
      }
    }
#pragma unroll
    for (int n = 0; n < kKeyTiles; n += 2) {
      Fragment p;
      round_to_left<T>(p, scores[n], scores[n + 1]);
#pragma unroll
      for (int part = 0; part < kD / 16; ++part) {
        Fragment v;
        load_right_columns<kD>(v, v_tile, n * 8, part);
        multiply_add<T>(out[2 * part], p, v[0], v[1]);
        multiply_add<T>(out[2 * part + 1], p, v[2], v[3]);
      }
    }
    __syncthreads();  // the tile may be overwritten
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(0xffffffffU, total[half], 1);
    total[half] += __shfl_xor_sync(0xffffffffU, total[half], 2);
    const int query = row + half * 8;
    if (query >= layout.queries) continue;
    const float inverse = 1.0F / total[half];
    T* to = a.out + layout.output(batch, head) + std::int64_t{query} * layout.width;
#pragma unroll
    for (int d = 0; d < kD / 8; ++d) {
      const int col = d * 8 + lane % 4 * 2;
      if (col >= layout.head_dim) continue;
      *reinterpret_cast<std::uint32_t*>(to + col) =
          pack_pair<T>(out[d][2 * half] * inverse, out[d][2 * half + 1] * inverse);
    }
    if (lane % 4 == 0) {
      a.lse[layout.statistics(batch, head) + query] = (largest[half] + log2f(total[half])) * kLn2;
    }
  }
}

template <class T, int kD>
void run(const Launch& launch, const AttentionForward& o) {
  const ForwardArgs<T> args{.layout = layout_of(o.heads, o.others),
                            .queries = first_query<T>(o.qkv, o.others),
                            .keys = first_key<T>(o.qkv, o.heads, o.others),
                            .out = first_query<T>(o.out, o.others),
                            .lse = first_statistic(o.lse, o.others)};
  constexpr int kShared = kSharedElements<kD> * static_cast<int>(sizeof(T));
  const auto kernel = flash_forward_kernel<T, kD>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  const dim3 grid(static_cast<unsigned>(ceil_div(args.layout.queries, kQueries)),
                  static_cast<unsigned>(o.heads.query_heads), static_cast<unsigned>(o.heads.batch));
  kernel<<<grid, kThreads, kShared, launch.stream>>>(args);
  check_launch();
}

}  // namespace

void flash_forward(const Launch& launch, const AttentionForward& o) {
  const auto with_type = [&](auto zero) {
    using T = decltype(zero);
    o.heads.head_dim <= 64 ? run<T, 64>(launch, o) : run<T, 128>(launch, o);
  };
  o.qkv.dtype == DType::bf16 ? with_type(__nv_bfloat16{}) : with_type(__half{});
}

}  // namespace shardplan::validator::cuda
