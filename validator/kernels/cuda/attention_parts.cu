// What puts attention over several ranks' keys together.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

template <class T>
struct MergeArgs {
  int sequence;
  int heads;
  int head_dim;
  int first_query;
  int queries;
  float* sum;
  float* lse;
  const T* part;
  const float* part_lse;
};

/// A warp a query of a head.
template <class T>
__global__ void merge_kernel(MergeArgs<T> a) {
  const int index = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (index >= a.queries) return;
  const int query = a.first_query + index;
  const std::int64_t statistic = (std::int64_t{batch} * a.heads + head) * a.sequence + query;
  const std::int64_t at =
      ((std::int64_t{batch} * a.sequence + query) * a.heads + head) * a.head_dim;
  const float mine = a.lse[statistic];
  const float theirs = a.part_lse[statistic];
  const float largest = fmaxf(mine, theirs);
  const float my_share = expf(mine - largest);
  const float their_share = expf(theirs - largest);
  const float total = my_share + their_share;
  for (int d = lane; d < a.head_dim; d += kWarp) {
    const float part = to_float(a.part[at + d]);
    a.sum[at + d] = (a.sum[at + d] * my_share + part * their_share) / total;
  }
  __syncwarp();  // all lanes have read it
  if (lane == 0) a.lse[statistic] = largest + logf(total);
}

template <class To, class From>
struct ColumnArgs {
  To* to;  // at the first row and column
  const From* from;
  std::int64_t to_row;  // elements
  std::int64_t from_row;
  std::int64_t sequence;  // rows
  int columns;
  bool accumulate;
};

/// A block a row.
template <class To, class From, int W>
__global__ void columns_kernel(ColumnArgs<To, From> a) {
  const std::int64_t row = std::int64_t{blockIdx.y} * a.sequence + blockIdx.x;
  To* to = a.to + row * a.to_row;
  const From* from = a.from + row * a.from_row;
  for (int c = static_cast<int>(threadIdx.x) * W; c < a.columns; c += kThreads * W) {
    const Pack<From, W> in = load<W>(from + c);
    Pack<To, W> out = a.accumulate ? load<W>(to + c) : zero_pack<To, W>();
#pragma unroll
    for (int i = 0; i < W; ++i) out.set(i, a.accumulate ? out[i] + in[i] : in[i]);
    store<W>(to + c, out);
  }
}

/// Whether rows of both matrices can be read four elements at a time.
bool in_fours(const ColumnCopy& o) {
  const auto fits = [](std::int64_t elements) { return elements % 4 == 0; };
  return fits(o.columns) && fits(o.to_column) && fits(o.from_column) && fits(o.to.width()) &&
         fits(o.from.width()) && o.to.address % 16 == 0 && o.from.address % 16 == 0;
}

}  // namespace

void merge_attention(const Launch& launch, const AttentionMerge& o) {
  const Heads& heads = o.heads;
  for_dtype(o.part.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MergeArgs<T> args{.sequence = static_cast<int>(heads.sequence),
                            .heads = static_cast<int>(heads.query_heads),
                            .head_dim = static_cast<int>(heads.head_dim),
                            .first_query = static_cast<int>(o.queries.first),
                            .queries = static_cast<int>(o.queries.count),
                            .sum = data<float>(o.sum),
                            .lse = data<float>(o.lse),
                            .part = data<T>(o.part),
                            .part_lse = data<float>(o.part_lse)};
    const dim3 grid(static_cast<unsigned>(ceil_div(o.queries.count, kWarps)),
                    static_cast<unsigned>(heads.query_heads), static_cast<unsigned>(heads.batch));
    merge_kernel<<<grid, kThreads, 0, launch.stream>>>(args);
  });
  check_launch();
}

void copy_columns(const Launch& launch, const ColumnCopy& o) {
  const dim3 grid(static_cast<unsigned>(o.rows.count),
                  static_cast<unsigned>(o.to.rows() / o.sequence));
  for_dtype(o.to.dtype, [&](auto to) {
    using To = decltype(to);
    for_dtype(o.from.dtype, [&](auto from) {
      using From = decltype(from);
      const ColumnArgs<To, From> args{
          .to = data<To>(o.to) + o.rows.first * o.to.width() + o.to_column,
          .from = data<From>(o.from) + o.rows.first * o.from.width() + o.from_column,
          .to_row = o.to.width(),
          .from_row = o.from.width(),
          .sequence = o.sequence,
          .columns = static_cast<int>(o.columns),
          .accumulate = o.accumulate};
      if (in_fours(o)) {
        columns_kernel<To, From, 4><<<grid, kThreads, 0, launch.stream>>>(args);
      } else {
        columns_kernel<To, From, 1><<<grid, kThreads, 0, launch.stream>>>(args);
      }
    });
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
