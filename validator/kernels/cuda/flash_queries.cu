// Flash attention, backward, the gradient of the queries: as the forward pass, a block of 128
// queries walks over the keys they see. The probabilities are computed again from the log-sum-exp.
// The gradients of keys and values have a kernel of their own (flash_keys.cu): two products more
// than one kernel for both would need, but no atomic additions, and so the same bits every time.
#include "kernels/cuda/attention_layout.h"
#include "kernels/cuda/tiles.cuh"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kQueries = kWarps * 16;
constexpr int kKeys = 64;
constexpr int kKeyTiles = kKeys / 8;

template <class T>
struct QueryArgs {
  HeadLayout layout;
  T* dqueries;
  const T* dout;
  const T* queries;
  const T* keys;
  const float* lse;
  const float* deltas;
};

template <int kD>
constexpr int kSharedElements = (2 * kQueries + 4 * kKeys) * kD;

template <class T, int kD>
__global__ void __launch_bounds__(kThreads) flash_queries_kernel(QueryArgs<T> a) {
  extern __shared__ __align__(128) char shared[];
  T* q_tile = reinterpret_cast<T*>(shared);
  T* dout_tile = q_tile + kQueries * kD;
  T* k_tiles = dout_tile + kQueries * kD;  // two, in turn
  T* v_tiles = k_tiles + 2 * kKeys * kD;
  const HeadLayout& layout = a.layout;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  const int valid_queries = layout.queries - first_query;
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
      layout.packed, valid_queries, layout.head_dim);
  copy_tile<kD, kQueries, kThreads>(
      dout_tile, a.dout + layout.output(batch, head) + std::int64_t{first_query} * layout.width,
      layout.width, valid_queries, layout.head_dim);
  copy_keys(0);

  const int row = first_query + warp * 16 + lane / 4;
  const float scale = layout.scale * kLog2E;
  float log_sum[2];  // times log2(e); +inf makes the probabilities of rows past the end zero
  float delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = row + half * 8;
    const std::int64_t at = layout.statistics(batch, head) + query;
    log_sum[half] = query < layout.queries ? a.lse[at] * kLog2E : INFINITY;
    delta[half] = query < layout.queries ? a.deltas[at] : 0.0F;
  }
  float dq[kD / 8][4] = {};

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
    float dscores[kKeyTiles][4] = {};  // first of the probabilities, then of the scores
#pragma unroll
    for (int step = 0; step < kD / 16; ++step) {
      Fragment q;
      Fragment dout;
      load_left<kD>(q, q_tile, warp * 16, step);
      load_left<kD>(dout, dout_tile, warp * 16, step);
#pragma unroll
      for (int n = 0; n < kKeyTiles; n += 2) {
        Fragment right;
        load_right_rows<kD>(right, k_tile, n * 8, step);
        multiply_add<T>(scores[n], q, right[0], right[1]);
        multiply_add<T>(scores[n + 1], q, right[2], right[3]);
        load_right_rows<kD>(right, v_tile, n * 8, step);
        multiply_add<T>(dscores[n], dout, right[0], right[1]);
        multiply_add<T>(dscores[n + 1], dout, right[2], right[3]);
      }
    }
    const int first_key = tile * kKeys;
    // The diagonal, or the end of the keys, crosses this tile.
    const bool crossed = first_key + kKeys - 1 > layout.last_key(first_query + warp * 16);
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = first_key + n * 8 + lane % 4 * 2 + i % 2;
        const bool hidden = crossed && key > layout.last_key(row + i / 2 * 8);
        const float p = hidden ? 0.0F : fast_exp2(scores[n][i] * scale - log_sum[i / 2]);
        dscores[n][i] = p * (dscores[n][i] - delta[i / 2]) * layout.scale;
      }
    }
#pragma unroll
    for (int n = 0; n < kKeyTiles; n += 2) {
      Fragment ds;
      round_to_left<T>(ds, dscores[n], dscores[n + 1]);
#pragma unroll
      for (int part = 0; part < kD / 16; ++part) {
        Fragment k;
        load_right_columns<kD>(k, k_tile, n * 8, part);
        multiply_add<T>(dq[2 * part], ds, k[0], k[1]);
        multiply_add<T>(dq[2 * part + 1], ds, k[2], k[3]);
      }
    }
    __syncthreads();  // the tile may be overwritten
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = row + half * 8;
    if (query >= layout.queries) continue;
    T* to = a.dqueries + layout.query(batch, head) + std::int64_t{query} * layout.packed;
#pragma unroll
    for (int d = 0; d < kD / 8; ++d) {
      const int col = d * 8 + lane % 4 * 2;
      if (col >= layout.head_dim) continue;
      *reinterpret_cast<std::uint32_t*>(to + col) =
          pack_pair<T>(dq[d][2 * half], dq[d][2 * half + 1]);
    }
  }
}

template <class T, int kD>
void run(const Launch& launch, const AttentionBackward& o, const float* deltas) {
  const QueryArgs<T> args{.layout = layout_of(o.heads, o.others),
                          .dqueries = first_query<T>(o.dqkv, o.others),
                          .dout = first_query<T>(o.dout, o.others),
                          .queries = first_query<T>(o.qkv, o.others),
                          .keys = first_key<T>(o.qkv, o.heads, o.others),
                          .lse = first_statistic(o.lse, o.others),
                          .deltas = deltas};
  constexpr int kShared = kSharedElements<kD> * static_cast<int>(sizeof(T));
  const auto kernel = flash_queries_kernel<T, kD>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  const dim3 grid(static_cast<unsigned>(ceil_div(args.layout.queries, kQueries)),
                  static_cast<unsigned>(o.heads.query_heads), static_cast<unsigned>(o.heads.batch));
  kernel<<<grid, kThreads, kShared, launch.stream>>>(args);
  check_launch();
}

}  // namespace

void flash_backward_queries(const Launch& launch, const AttentionBackward& o, const float* deltas) {
  const auto with_type = [&](auto zero) {
    using T = decltype(zero);
    o.heads.head_dim <= 64 ? run<T, 64>(launch, o, deltas) : run<T, 128>(launch, o, deltas);
  };
  o.qkv.dtype == DType::bf16 ? with_type(__nv_bfloat16{}) : with_type(__half{});
}

}  // namespace shardplan::validator::cuda
