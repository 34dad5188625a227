// Attention a warp a row: of queries for the output and their gradient, of keys for theirs. Each
// lane holds a part of the row, so any head width and any element type will do. This is what fp32
// runs with; bf16 and fp16 have faster kernels.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_layout.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kParts = 8;  // elements that a lane holds at most: heads of 256

/// Elements lane, lane + 32, ... of a head's row.
struct Row {
  float values[kParts];
};

__device__ int lane_of_thread() {
  return static_cast<int>(threadIdx.x) % kWarp;
}

template <class T>
__device__ Row load_row(const T* from, int head_dim) {
  Row row;
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const int col = p * kWarp + lane_of_thread();
    row.values[p] = col < head_dim ? to_float(from[col]) : 0.0F;
  }
  return row;
}

template <class T>
__device__ void store_row(T* to, const Row& row, float factor, int head_dim) {
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const int col = p * kWarp + lane_of_thread();
    if (col < head_dim) to[col] = from_float<T>(row.values[p] * factor);
  }
}

__device__ float dot(const Row& a, const Row& b) {
  float sum = 0.0F;
#pragma unroll
  for (int p = 0; p < kParts; ++p) sum += a.values[p] * b.values[p];
  return warp_reduce(sum, Sum{});
}

__device__ void add_scaled(Row& to, float factor, const Row& row) {
#pragma unroll
  for (int p = 0; p < kParts; ++p) to.values[p] += factor * row.values[p];
}

/// The row that this thread's warp works on.
__device__ int row_of_warp() {
  return static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarp;
}

template <class T>
__global__ void forward_kernel(HeadLayout layout, T* out, float* lse, const T* queries,
                               const T* keys) {
  const int query = row_of_warp();
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (query >= layout.queries) return;
  const int key_head = head / layout.group();
  const Row q = load_row(queries + layout.query(batch, head) + std::int64_t{query} * layout.packed,
                         layout.head_dim);
  Row sum = {};
  float largest = -INFINITY;
  float total = 0.0F;
  for (int key = 0; key <= layout.last_key(query); ++key) {
    const std::int64_t at = std::int64_t{key} * layout.key_row;
    const Row k = load_row(keys + layout.key(batch, key_head) + at, layout.head_dim);
    const Row v = load_row(keys + layout.value(batch, key_head) + at, layout.head_dim);
    const float score = dot(q, k) * layout.scale;
    const float now = fmaxf(largest, score);
    const float shrink = expf(largest - now);
    const float p = expf(score - now);
    total = total * shrink + p;
#pragma unroll
    for (int i = 0; i < kParts; ++i) sum.values[i] *= shrink;
    add_scaled(sum, p, v);
    largest = now;
  }
  store_row(out + layout.output(batch, head) + std::int64_t{query} * layout.width, sum,
            1.0F / total, layout.head_dim);
  if (lane_of_thread() == 0) {
    lse[layout.statistics(batch, head) + query] = largest + logf(total);
  }
}

template <class T>
struct BackwardArgs {
  HeadLayout layout;
  T* dqueries;
  T* dkeys;
  const T* dout;
  const T* queries;
  const T* keys;
  const float* lse;
  const float* deltas;
};

template <class T>
__global__ void queries_kernel(BackwardArgs<T> a) {
  const HeadLayout& layout = a.layout;
  const int query = row_of_warp();
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (query >= layout.queries) return;
  const int key_head = head / layout.group();
  const std::int64_t query_at = layout.query(batch, head) + std::int64_t{query} * layout.packed;
  const Row q = load_row(a.queries + query_at, layout.head_dim);
  const Row dout = load_row(
      a.dout + layout.output(batch, head) + std::int64_t{query} * layout.width, layout.head_dim);
  const float lse = a.lse[layout.statistics(batch, head) + query];
  const float delta = a.deltas[layout.statistics(batch, head) + query];
  Row dq = {};
  for (int key = 0; key <= layout.last_key(query); ++key) {
    const std::int64_t at = std::int64_t{key} * layout.key_row;
    const Row k = load_row(a.keys + layout.key(batch, key_head) + at, layout.head_dim);
    const Row v = load_row(a.keys + layout.value(batch, key_head) + at, layout.head_dim);
    const float p = expf(dot(q, k) * layout.scale - lse);
    add_scaled(dq, p * (dot(dout, v) - delta), k);
  }
  store_row(a.dqueries + query_at, dq, layout.scale, layout.head_dim);
}

template <class T>
__global__ void keys_kernel(BackwardArgs<T> a) {
  const HeadLayout& layout = a.layout;
  const int key = row_of_warp();
  const int key_head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (key >= layout.keys) return;
  const std::int64_t at = std::int64_t{key} * layout.key_row;
  const Row k = load_row(a.keys + layout.key(batch, key_head) + at, layout.head_dim);
  const Row v = load_row(a.keys + layout.value(batch, key_head) + at, layout.head_dim);
  Row dk = {};
  Row dv = {};
  for (int member = 0; member < layout.group(); ++member) {
    const int head = key_head * layout.group() + member;
    for (int query = layout.causal ? key : 0; query < layout.queries; ++query) {
      const Row q =
          load_row(a.queries + layout.query(batch, head) + std::int64_t{query} * layout.packed,
                   layout.head_dim);
      const Row dout =
          load_row(a.dout + layout.output(batch, head) + std::int64_t{query} * layout.width,
                   layout.head_dim);
      const std::int64_t statistic = layout.statistics(batch, head) + query;
      const float p = expf(dot(q, k) * layout.scale - a.lse[statistic]);
      add_scaled(dv, p, dout);
      add_scaled(dk, p * (dot(dout, v) - a.deltas[statistic]), q);
    }
  }
  const std::int64_t to = std::int64_t{key} * layout.packed;
  store_row(a.dkeys + layout.key_gradient(batch, key_head) + to, dk, layout.scale, layout.head_dim);
  store_row(a.dkeys + layout.value_gradient(batch, key_head) + to, dv, 1.0F, layout.head_dim);
}

template <class T>
__global__ void deltas_kernel(HeadLayout layout, float* deltas, const T* out, const T* dout) {
  const int query = row_of_warp();
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (query >= layout.queries) return;
  const std::int64_t at = layout.output(batch, head) + std::int64_t{query} * layout.width;
  const float delta =
      dot(load_row(out + at, layout.head_dim), load_row(dout + at, layout.head_dim));
  if (lane_of_thread() == 0) deltas[layout.statistics(batch, head) + query] = delta;
}

/// `rows` of each of `heads` heads of a sequence.
dim3 grid_of(std::int64_t rows, std::int64_t heads, std::int64_t batch) {
  return {static_cast<unsigned>(ceil_div(rows, kWarps)), static_cast<unsigned>(heads),
          static_cast<unsigned>(batch)};
}

class SimpleAttention : public Attention {
 public:
  std::string name() const override { return "a warp a row"; }

  bool supports(DType /*dtype*/, const Heads& heads, const OtherKeys& /*others*/) const override {
    return heads.head_dim <= kParts * kWarp;
  }

  void forward(const Launch& launch, const AttentionForward& o) override {
    for_dtype(o.qkv.dtype, [&](auto zero) {
      using T = decltype(zero);
      const HeadLayout layout = layout_of(o.heads, o.others);
      forward_kernel<<<grid_of(layout.queries, layout.query_heads, o.heads.batch), kThreads, 0,
                       launch.stream>>>(
          layout, first_query<T>(o.out, o.others), first_statistic(o.lse, o.others),
          first_query<T>(o.qkv, o.others), first_key<T>(o.qkv, o.heads, o.others));
    });
    check_launch();
  }

  void backward(const Launch& launch, const AttentionBackward& o) override {
    const float* deltas = attention_deltas(launch, o);
    for_dtype(o.qkv.dtype, [&](auto zero) {
      using T = decltype(zero);
      const HeadLayout layout = layout_of(o.heads, o.others);
      const BackwardArgs<T> args{.layout = layout,
                                 .dqueries = first_query<T>(o.dqkv, o.others),
                                 .dkeys = first_key_gradient<T>(o.dqkv, o.heads, o.others),
                                 .dout = first_query<T>(o.dout, o.others),
                                 .queries = first_query<T>(o.qkv, o.others),
                                 .keys = first_key<T>(o.qkv, o.heads, o.others),
                                 .lse = first_statistic(o.lse, o.others),
                                 .deltas = deltas};
      queries_kernel<<<grid_of(layout.queries, layout.query_heads, o.heads.batch), kThreads, 0,
                       launch.stream>>>(args);
      keys_kernel<<<grid_of(layout.keys, layout.key_heads, o.heads.batch), kThreads, 0,
                    launch.stream>>>(args);
    });
    check_launch();
  }
};

}  // namespace

const float* attention_deltas(const Launch& launch, const AttentionBackward& o) {
  float* deltas = launch.scratch<float>(o.lse.numel());
  for_dtype(o.out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const HeadLayout layout = layout_of(o.heads, o.others);
    deltas_kernel<<<grid_of(layout.queries, layout.query_heads, o.heads.batch), kThreads, 0,
                    launch.stream>>>(layout, deltas, first_query<T>(o.out, o.others),
                                     first_query<T>(o.dout, o.others));
  });
  check_launch();
  return deltas;
}

std::unique_ptr<Attention> make_simple_attention() {
  return std::make_unique<SimpleAttention>();
}

std::int64_t attention_workspace(const Heads& heads) {
  return heads.rows() * heads.query_heads * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace shardplan::validator::cuda
