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
__global__ void forward_kernel(HeadLayout layout, T* out, float* lse, const T* qkv) {
  const int query = row_of_warp();
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (query >= layout.sequence) return;
  const int key_head = head / layout.group();
  const Row q = load_row(qkv + layout.query(batch, head) + std::int64_t{query} * layout.packed,
                         layout.head_dim);
  Row sum = {};
  float largest = -INFINITY;
  float total = 0.0F;
  for (int key = 0; key <= query; ++key) {
    const std::int64_t at = std::int64_t{key} * layout.packed;
    const Row k = load_row(qkv + layout.key(batch, key_head) + at, layout.head_dim);
    const Row v = load_row(qkv + layout.value(batch, key_head) + at, layout.head_dim);
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
  T* dqkv;
  const T* dout;
  const T* qkv;
  const float* lse;
  const float* deltas;
};

template <class T>
__global__ void queries_kernel(BackwardArgs<T> a) {
  const HeadLayout& layout = a.layout;
  const int query = row_of_warp();
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (query >= layout.sequence) return;
  const int key_head = head / layout.group();
  const std::int64_t query_at = layout.query(batch, head) + std::int64_t{query} * layout.packed;
  const Row q = load_row(a.qkv + query_at, layout.head_dim);
  const Row dout = load_row(
      a.dout + layout.output(batch, head) + std::int64_t{query} * layout.width, layout.head_dim);
  const float lse = a.lse[layout.statistics(batch, head) + query];
  const float delta = a.deltas[layout.statistics(batch, head) + query];
  Row dq = {};
  for (int key = 0; key <= query; ++key) {
    const std::int64_t at = std::int64_t{key} * layout.packed;
    const Row k = load_row(a.qkv + layout.key(batch, key_head) + at, layout.head_dim);
    const Row v = load_row(a.qkv + layout.value(batch, key_head) + at, layout.head_dim);
    const float p = expf(dot(q, k) * layout.scale - lse);
    add_scaled(dq, p * (dot(dout, v) - delta), k);
  }
  store_row(a.dqkv + query_at, dq, layout.scale, layout.head_dim);
}

template <class T>
__global__ void keys_kernel(BackwardArgs<T> a) {
  const HeadLayout& layout = a.layout;
  const int key = row_of_warp();
  const int key_head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (key >= layout.sequence) return;
  const std::int64_t at = std::int64_t{key} * layout.packed;
  const Row k = load_row(a.qkv + layout.key(batch, key_head) + at, layout.head_dim);
  const Row v = load_row(a.qkv + layout.value(batch, key_head) + at, layout.head_dim);
  Row dk = {};
  Row dv = {};
  for (int member = 0; member < layout.group(); ++member) {
    const int head = key_head * layout.group() + member;
    for (int query = key; query < layout.sequence; ++query) {
      const Row q = load_row(
          a.qkv + layout.query(batch, head) + std::int64_t{query} * layout.packed, layout.head_dim);
      const Row dout =
          load_row(a.dout + layout.output(batch, head) + std::int64_t{query} * layout.width,
                   layout.head_dim);
      const std::int64_t statistic = layout.statistics(batch, head) + query;
      const float p = expf(dot(q, k) * layout.scale - a.lse[statistic]);
      add_scaled(dv, p, dout);
      add_scaled(dk, p * (dot(dout, v) - a.deltas[statistic]), q);
    }
  }
  store_row(a.dqkv + layout.key(batch, key_head) + at, dk, layout.scale, layout.head_dim);
  store_row(a.dqkv + layout.value(batch, key_head) + at, dv, 1.0F, layout.head_dim);
}

template <class T>
__global__ void deltas_kernel(HeadLayout layout, float* deltas, const T* out, const T* dout) {
  const int query = row_of_warp();
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (query >= layout.sequence) return;
  const std::int64_t at = layout.output(batch, head) + std::int64_t{query} * layout.width;
  const float delta =
      dot(load_row(out + at, layout.head_dim), load_row(dout + at, layout.head_dim));
  if (lane_of_thread() == 0) deltas[layout.statistics(batch, head) + query] = delta;
}

dim3 grid_of(const Heads& heads, std::int64_t count) {
  return {static_cast<unsigned>(ceil_div(heads.sequence, kWarps)), static_cast<unsigned>(count),
          static_cast<unsigned>(heads.batch)};
}

class SimpleAttention : public Attention {
 public:
  std::string name() const override { return "a warp a row"; }

  bool supports(DType /*dtype*/, const Heads& heads) const override {
    return heads.head_dim <= kParts * kWarp;
  }

  void forward(const Launch& launch, const AttentionForward& o) override {
    for_dtype(o.qkv.dtype, [&](auto zero) {
      using T = decltype(zero);
      forward_kernel<<<grid_of(o.heads, o.heads.query_heads), kThreads, 0, launch.stream>>>(
          layout_of(o.heads), data<T>(o.out), data<float>(o.lse), data<T>(o.qkv));
    });
    check_launch();
  }

  void backward(const Launch& launch, const AttentionBackward& o) override {
    float* deltas = launch.scratch<float>(o.lse.numel());
    attention_deltas(launch, deltas, o);
    for_dtype(o.qkv.dtype, [&](auto zero) {
      using T = decltype(zero);
      const BackwardArgs<T> args{.layout = layout_of(o.heads),
                                 .dqkv = data<T>(o.dqkv),
                                 .dout = data<T>(o.dout),
                                 .qkv = data<T>(o.qkv),
                                 .lse = data<float>(o.lse),
                                 .deltas = deltas};
      queries_kernel<<<grid_of(o.heads, o.heads.query_heads), kThreads, 0, launch.stream>>>(args);
      keys_kernel<<<grid_of(o.heads, o.heads.key_value_heads), kThreads, 0, launch.stream>>>(args);
    });
    check_launch();
  }
};

}  // namespace

void attention_deltas(const Launch& launch, float* deltas, const AttentionBackward& o) {
  for_dtype(o.out.dtype, [&](auto zero) {
    using T = decltype(zero);
    deltas_kernel<<<grid_of(o.heads, o.heads.query_heads), kThreads, 0, launch.stream>>>(
        layout_of(o.heads), deltas, data<T>(o.out), data<T>(o.dout));
  });
  check_launch();
}

std::unique_ptr<Attention> make_simple_attention() {
  return std::make_unique<SimpleAttention>();
}

std::int64_t attention_workspace(const Heads& heads) {
  return heads.rows() * heads.query_heads * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace shardplan::validator::cuda
