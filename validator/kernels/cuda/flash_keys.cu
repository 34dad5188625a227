// Flash attention, backward, the gradients of keys and values: a block holds 128 keys and walks
// over the queries that see them, of every query head of the group. Scores are computed transposed
// (keys × queries), so that the probabilities lie in registers as the next products' left operand.
#include "kernels/cuda/attention_layout.h"
#include "kernels/cuda/tiles.cuh"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kKeys = kWarps * 16;
constexpr int kQueries = 32;
constexpr int kQueryTiles = kQueries / 8;

template <class T>
struct KeyArgs {
  HeadLayout layout;
  T* dkeys;
  const T* dout;
  const T* queries;
  const T* keys;
  const float* lse;
  const float* deltas;
};

template <int kD>
constexpr int kSharedElements = (2 * kKeys + 4 * kQueries) * kD;

/// Statistics of the queries of a tile, beside its elements: log-sum-exp times log2(e), and delta.
struct Statistics {
  float log_sums[kQueries];
  float deltas[kQueries];
};

template <class T, int kD>
__global__ void __launch_bounds__(kThreads) flash_keys_kernel(KeyArgs<T> a) {
  extern __shared__ __align__(128) char shared[];
  __shared__ Statistics statistics[2];
  T* k_tile = reinterpret_cast<T*>(shared);
  T* v_tile = k_tile + kKeys * kD;
  T* q_tiles = v_tile + kKeys * kD;  // two, in turn
  T* dout_tiles = q_tiles + 2 * kQueries * kD;
  const HeadLayout& layout = a.layout;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int key_head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  const int first_key = static_cast<int>(blockIdx.x) * kKeys;  // the first keys have most queries
  const int valid_keys = layout.keys - first_key;
  const int first_tile = layout.causal ? first_key / kQueries : 0;
  const int tiles_of_head = (layout.queries + kQueries - 1) / kQueries - first_tile;
  const int tiles = tiles_of_head * layout.group();

  const auto copy_queries = [&](int tile) {
    const int head = key_head * layout.group() + tile / tiles_of_head;
    const int begin = (first_tile + tile % tiles_of_head) * kQueries;
    const int valid = layout.queries - begin;
    const int slot = tile % 2;
    copy_tile<kD, kQueries, kThreads>(
        q_tiles + slot * kQueries * kD,
        a.queries + layout.query(batch, head) + std::int64_t{begin} * layout.packed, layout.packed,
        valid, layout.head_dim);
    copy_tile<kD, kQueries, kThreads>(
        dout_tiles + slot * kQueries * kD,
        a.dout + layout.output(batch, head) + std::int64_t{begin} * layout.width, layout.width,
        valid, layout.head_dim);
    commit_copies();
    if (const int i = static_cast<int>(threadIdx.x); i < kQueries) {
      const std::int64_t at = layout.statistics(batch, head) + begin + i;
      // +inf makes the probabilities of rows past the end zero.
      statistics[slot].log_sums[i] = i < valid ? a.lse[at] * kLog2E : INFINITY;
      statistics[slot].deltas[i] = i < valid ? a.deltas[at] : 0.0F;
    }
  };
  copy_tile<kD, kKeys, kThreads>(
      k_tile, a.keys + layout.key(batch, key_head) + std::int64_t{first_key} * layout.key_row,
      layout.key_row, valid_keys, layout.head_dim);
  copy_tile<kD, kKeys, kThreads>(
      v_tile, a.keys + layout.value(batch, key_head) + std::int64_t{first_key} * layout.key_row,
      layout.key_row, valid_keys, layout.head_dim);
  copy_queries(0);

  const int key = first_key + warp * 16 + lane / 4;
  const float scale = layout.scale * kLog2E;
  float dk[kD / 8][4] = {};
  float dv[kD / 8][4] = {};

  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      copy_queries(tile + 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    const T* q_tile = q_tiles + tile % 2 * kQueries * kD;
    const T* dout_tile = dout_tiles + tile % 2 * kQueries * kD;
    const Statistics& stats = statistics[tile % 2];

    float scores[kQueryTiles][4] = {};   // keys × queries
    float dscores[kQueryTiles][4] = {};  // first of the probabilities, then of the scores
#pragma unroll
    for (int step = 0; step < kD / 16; ++step) {
      Fragment k;
      Fragment v;
      load_left<kD>(k, k_tile, warp * 16, step);
      load_left<kD>(v, v_tile, warp * 16, step);
#pragma unroll
      for (int n = 0; n < kQueryTiles; n += 2) {
        Fragment right;
        load_right_rows<kD>(right, q_tile, n * 8, step);
        multiply_add<T>(scores[n], k, right[0], right[1]);
        multiply_add<T>(scores[n + 1], k, right[2], right[3]);
        load_right_rows<kD>(right, dout_tile, n * 8, step);
        multiply_add<T>(dscores[n], v, right[0], right[1]);
        multiply_add<T>(dscores[n + 1], v, right[2], right[3]);
      }
    }
    const int first_query = (first_tile + tile % tiles_of_head) * kQueries;
    const bool diagonal = layout.causal && first_query < first_key + warp * 16 + 15;
#pragma unroll
    for (int n = 0; n < kQueryTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = n * 8 + lane % 4 * 2 + i % 2;
        const bool hidden = diagonal && key + i / 2 * 8 > first_query + column;
        const float p = hidden ? 0.0F : fast_exp2(scores[n][i] * scale - stats.log_sums[column]);
        scores[n][i] = p;
        dscores[n][i] = p * (dscores[n][i] - stats.deltas[column]) * layout.scale;
      }
    }
#pragma unroll
    for (int n = 0; n < kQueryTiles; n += 2) {
      Fragment p;
      Fragment ds;
      round_to_left<T>(p, scores[n], scores[n + 1]);
      round_to_left<T>(ds, dscores[n], dscores[n + 1]);
#pragma unroll
      for (int part = 0; part < kD / 16; ++part) {
        Fragment right;
        load_right_columns<kD>(right, dout_tile, n * 8, part);
        multiply_add<T>(dv[2 * part], p, right[0], right[1]);
        multiply_add<T>(dv[2 * part + 1], p, right[2], right[3]);
        load_right_columns<kD>(right, q_tile, n * 8, part);
        multiply_add<T>(dk[2 * part], ds, right[0], right[1]);
        multiply_add<T>(dk[2 * part + 1], ds, right[2], right[3]);
      }
    }
    __syncthreads();  // the tile may be overwritten
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = key + half * 8;
    if (row >= layout.keys) continue;
    const std::int64_t at = std::int64_t{row} * layout.packed;
    T* dk_row = a.dkeys + layout.key_gradient(batch, key_head) + at;
    T* dv_row = a.dkeys + layout.value_gradient(batch, key_head) + at;
#pragma unroll
    for (int d = 0; d < kD / 8; ++d) {
      const int col = d * 8 + lane % 4 * 2;
      if (col >= layout.head_dim) continue;
      *reinterpret_cast<std::uint32_t*>(dk_row + col) =
          pack_pair<T>(dk[d][2 * half], dk[d][2 * half + 1]);
      *reinterpret_cast<std::uint32_t*>(dv_row + col) =
          pack_pair<T>(dv[d][2 * half], dv[d][2 * half + 1]);
    }
  }
}

template <class T, int kD>
void run(const Launch& launch, const AttentionBackward& o, const float* deltas) {
  const KeyArgs<T> args{.layout = layout_of(o.heads, o.others),
                        .dkeys = first_key_gradient<T>(o.dqkv, o.heads, o.others),
                        .dout = first_query<T>(o.dout, o.others),
                        .queries = first_query<T>(o.qkv, o.others),
                        .keys = first_key<T>(o.qkv, o.heads, o.others),
                        .lse = first_statistic(o.lse, o.others),
                        .deltas = deltas};
  constexpr int kShared = kSharedElements<kD> * static_cast<int>(sizeof(T));
  const auto kernel = flash_keys_kernel<T, kD>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  const dim3 grid(static_cast<unsigned>(ceil_div(args.layout.keys, kKeys)),
                  static_cast<unsigned>(o.heads.key_value_heads),
                  static_cast<unsigned>(o.heads.batch));
  kernel<<<grid, kThreads, kShared, launch.stream>>>(args);
  check_launch();
}

}  // namespace

void flash_backward_keys(const Launch& launch, const AttentionBackward& o, const float* deltas) {
  const auto with_type = [&](auto zero) {
    using T = decltype(zero);
    o.heads.head_dim <= 64 ? run<T, 64>(launch, o, deltas) : run<T, 128>(launch, o, deltas);
  };
  o.qkv.dtype == DType::bf16 ? with_type(__nv_bfloat16{}) : with_type(__half{});
}

}  // namespace shardplan::validator::cuda
