// A row is held in the registers of its threads, a few 128-bit accesses each, so that x is read
// once; a block takes several short rows or one long one. The backward pass walks the rows with a
// fixed grid and keeps the weight's gradient in registers until the end.
#include <algorithm>

#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/launchers.h"

namespace shardplan::validator::cuda {
namespace {

constexpr int kForwardPacks = 4;   // accesses of a thread to its row
constexpr int kBackwardPacks = 2;  // fewer: the weight's gradient needs registers too
constexpr int kBlockThreads = 128;
constexpr int kForwardThreads = 1024;
/// Threads that leave each enough registers for kBackwardPacks of W elements without spilling.
template <int W>
constexpr int kBackwardThreads = W == 8 ? 512 : 1024;
constexpr int kMaxWarps = 32;
constexpr int kBackwardResident = 132 * 512;  // threads of the whole backward grid

struct RowShape {
  int threads;  // of one row: whole warps
  int rows;     // of one block
};

RowShape row_shape(std::int64_t width, int elements_per_thread, int most_threads) {
  const std::int64_t threads =
      std::max<std::int64_t>(round_up(ceil_div(width, elements_per_thread), kWarp), kWarp);
  if (threads > most_threads) {
    throw DeviceError("norm: rows of " + std::to_string(width) + " elements are too wide");
  }
  const auto count = static_cast<int>(threads);
  return {count, count < kBlockThreads ? kBlockThreads / count : 1};
}

/// Blocks of the backward pass. Each leaves a partial row, so there are no more than can be busy.
int backward_blocks(std::int64_t rows, RowShape block) {
  const std::int64_t wanted = ceil_div(rows, block.rows);
  const std::int64_t most = kBackwardResident / (block.threads * block.rows);
  return static_cast<int>(wanted < most ? wanted : most);
}

struct Pair {
  float first;
  float second;
};

/// The sums over the threads of a row (threadIdx.x), known to all of them.
__device__ Pair row_sums(Pair value, Pair* scratch) {
  value = {warp_reduce(value.first, Sum{}), warp_reduce(value.second, Sum{})};
  const unsigned warps = blockDim.x / kWarp;
  if (warps == 1) return value;
  Pair* mine = scratch + threadIdx.y * warps;
  __syncthreads();  // the last sum's readers are done
  if (threadIdx.x % kWarp == 0) mine[threadIdx.x / kWarp] = value;
  __syncthreads();
  Pair sum = {0.0F, 0.0F};
  for (unsigned warp = 0; warp < warps; ++warp) {
    sum = {sum.first + mine[warp].first, sum.second + mine[warp].second};
  }
  return sum;
}

__device__ float row_sum(float value, Pair* scratch) {
  return row_sums({value, 0.0F}, scratch).first;
}

template <int W>
__device__ int column(int pack) {
  return (pack * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * W;
}

template <class T>
struct ForwardArgs {
  T* out;
  float* mean;
  float* rstd;
  T* sum;
  const T* x;
  const T* branch;
  const T* weight;
  const T* bias;
  std::int64_t rows;
  int width;
  float epsilon;
};

template <class T, int W, NormKind kKind>
__global__ void __launch_bounds__(kForwardThreads) norm_forward_kernel(ForwardArgs<T> a) {
  __shared__ Pair scratch[kMaxWarps];
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const bool live = row < a.rows;
  const std::int64_t begin = live ? row * a.width : 0;
  const float scale = 1.0F / static_cast<float>(a.width);

  Pack<T, W> values[kForwardPacks];
#pragma unroll
  for (int p = 0; p < kForwardPacks; ++p) {
    const int col = column<W>(p);
    values[p] = live && col < a.width ? load<W>(a.x + begin + col) : zero_pack<T, W>();
  }
  if (a.branch != nullptr) {
#pragma unroll
    for (int p = 0; p < kForwardPacks; ++p) {
      const int col = column<W>(p);
      if (!live || col >= a.width) continue;
      const Pack<T, W> branch = load<W>(a.branch + begin + col);
#pragma unroll
      for (int i = 0; i < W; ++i) values[p].set(i, values[p][i] + branch[i]);
      store<W>(a.sum + begin + col, values[p]);
    }
  }
  float mean = 0.0F;
  if constexpr (kKind == NormKind::layer) {
#pragma unroll
    for (int p = 0; p < kForwardPacks; ++p) {
#pragma unroll
      for (int i = 0; i < W; ++i) mean += values[p][i];
    }
    mean = row_sum(mean, scratch) * scale;
  }
  float squares = 0.0F;
#pragma unroll
  for (int p = 0; p < kForwardPacks; ++p) {
    if (column<W>(p) >= a.width) continue;
#pragma unroll
    for (int i = 0; i < W; ++i) squares += (values[p][i] - mean) * (values[p][i] - mean);
  }
  const float rstd = rsqrtf(row_sum(squares, scratch) * scale + a.epsilon);
  if (!live) return;
  if (threadIdx.x == 0) {
    a.rstd[row] = rstd;
    if constexpr (kKind == NormKind::layer) a.mean[row] = mean;
  }
#pragma unroll
  for (int p = 0; p < kForwardPacks; ++p) {
    const int col = column<W>(p);
    if (col >= a.width) continue;
    const Pack<T, W> weight = load<W>(a.weight + col);
    Pack<T, W> bias = zero_pack<T, W>();
    if constexpr (kKind == NormKind::layer) bias = load<W>(a.bias + col);
    Pack<T, W> out;
#pragma unroll
    for (int i = 0; i < W; ++i) out.set(i, (values[p][i] - mean) * rstd * weight[i] + bias[i]);
    store<W>(a.out + begin + col, out);
  }
}

template <class T>
struct BackwardArgs {
  T* dx;
  const T* dout;
  const T* x;
  const T* weight;
  const float* mean;
  const float* rstd;
  float* dweight_partial;  // (blocks, width)
  float* dbias_partial;    // (blocks, width); layer norm only
  std::int64_t rows;
  int width;
  bool accumulate_dx;
};

template <int W>
struct ColumnTotals {
  float values[kBackwardPacks][W] = {};
};

/// Adds the totals of a block's rows, in order, and writes them as one partial row.
template <int W>
__device__ void write_partial(const ColumnTotals<W>& totals, float* sums, int width,
                              float* partial) {
  for (unsigned lane = 0; lane < blockDim.y; ++lane) {
    if (threadIdx.y == lane) {
#pragma unroll
      for (int p = 0; p < kBackwardPacks; ++p) {
        const int col = column<W>(p);
        if (col >= width) continue;
#pragma unroll
        for (int i = 0; i < W; ++i) {
          const float total = (lane == 0 ? 0.0F : sums[col + i]) + totals.values[p][i];
          (lane + 1 == blockDim.y ? partial : sums)[col + i] = total;
        }
      }
    }
    __syncthreads();
  }
}

template <class T, int W, NormKind kKind>
__global__ void __launch_bounds__(kBackwardThreads<W>) norm_backward_kernel(BackwardArgs<T> a) {
  extern __shared__ float sums[];
  __shared__ Pair scratch[kMaxWarps];
  const float scale = 1.0F / static_cast<float>(a.width);
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y;
  ColumnTotals<W> dweight;
  ColumnTotals<W> dbias;

  for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y; first < a.rows; first += step) {
    const std::int64_t row = first + threadIdx.y;
    const bool live = row < a.rows;
    const std::int64_t begin = live ? row * a.width : 0;
    const float rstd = live ? a.rstd[row] : 0.0F;
    const float mean = kKind == NormKind::layer && live ? a.mean[row] : 0.0F;
    Pack<T, W> x[kBackwardPacks];
    Pack<T, W> dout[kBackwardPacks];
    Pack<T, W> before[kBackwardPacks];  // of dx; loaded early, so that no load waits for the sums
#pragma unroll
    for (int p = 0; p < kBackwardPacks; ++p) {
      const int col = column<W>(p);
      const bool inside = live && col < a.width;
      x[p] = inside ? load<W>(a.x + begin + col) : zero_pack<T, W>();
      dout[p] = inside ? load<W>(a.dout + begin + col) : zero_pack<T, W>();
      before[p] = inside && a.accumulate_dx ? load<W>(a.dx + begin + col) : zero_pack<T, W>();
    }
    Pair along = {0.0F, 0.0F};  // of weight * dout: its sums times x_hat, and times one
#pragma unroll
    for (int p = 0; p < kBackwardPacks; ++p) {
      const int col = column<W>(p);
      if (col >= a.width) continue;
      const Pack<T, W> weight = load<W>(a.weight + col);
#pragma unroll
      for (int i = 0; i < W; ++i) {
        const float x_hat = (x[p][i] - mean) * rstd;
        along.first += weight[i] * dout[p][i] * x_hat;
        along.second += weight[i] * dout[p][i];
        dweight.values[p][i] += dout[p][i] * x_hat;
        if constexpr (kKind == NormKind::layer) dbias.values[p][i] += dout[p][i];
      }
    }
    along = row_sums(along, scratch);
    if (!live) continue;
    const float along_x = along.first * scale;
    const float along_one = kKind == NormKind::layer ? along.second * scale : 0.0F;
#pragma unroll
    for (int p = 0; p < kBackwardPacks; ++p) {
      const int col = column<W>(p);
      if (col >= a.width) continue;
      const Pack<T, W> weight = load<W>(a.weight + col);
      Pack<T, W> out;
#pragma unroll
      for (int i = 0; i < W; ++i) {
        const float x_hat = (x[p][i] - mean) * rstd;
        out.set(i, before[p][i] + rstd * (weight[i] * dout[p][i] - along_one - x_hat * along_x));
      }
      store<W>(a.dx + begin + col, out);
    }
  }
  const std::int64_t partial = std::int64_t{blockIdx.x} * a.width;
  write_partial<W>(dweight, sums, a.width, a.dweight_partial + partial);
  if constexpr (kKind == NormKind::layer) {
    write_partial<W>(dbias, sums, a.width, a.dbias_partial + partial);
  }
}

template <class T, int W, NormKind kKind>
void run_forward(const Launch& launch, const NormForward& o) {
  const auto width = static_cast<int>(o.x.width());
  const RowShape block = row_shape(width, W * kForwardPacks, kForwardThreads);
  const ForwardArgs<T> args{.out = data<T>(o.out),
                            .mean = data<float>(o.mean),
                            .rstd = data<float>(o.rstd),
                            .sum = data<T>(o.sum),
                            .x = data<T>(o.x),
                            .branch = data<T>(o.branch),
                            .weight = data<T>(o.weight),
                            .bias = data<T>(o.bias),
                            .rows = o.x.rows(),
                            .width = width,
                            .epsilon = o.epsilon};
  norm_forward_kernel<T, W, kKind><<<static_cast<unsigned>(ceil_div(args.rows, block.rows)),
                                     dim3(block.threads, block.rows), 0, launch.stream>>>(args);
  check_launch();
}

template <class T, int W, NormKind kKind>
void run_backward(const Launch& launch, const NormBackward& o) {
  const auto width = static_cast<int>(o.x.width());
  const RowShape block = row_shape(width, W * kBackwardPacks, kBackwardThreads<W>);
  const int blocks = backward_blocks(o.x.rows(), block);
  float* partial = launch.scratch<float>(std::int64_t{2} * blocks * width);
  float* bias_partial = partial + std::int64_t{blocks} * width;
  const BackwardArgs<T> args{.dx = data<T>(o.dx),
                             .dout = data<T>(o.dout),
                             .x = data<T>(o.x),
                             .weight = data<T>(o.weight),
                             .mean = data<float>(o.mean),
                             .rstd = data<float>(o.rstd),
                             .dweight_partial = partial,
                             .dbias_partial = bias_partial,
                             .rows = o.x.rows(),
                             .width = width,
                             .accumulate_dx = o.accumulate_dx};
  const std::size_t shared = block.rows > 1 ? static_cast<std::size_t>(width) * sizeof(float) : 0;
  norm_backward_kernel<T, W, kKind>
      <<<blocks, dim3(block.threads, block.rows), shared, launch.stream>>>(args);
  check_launch();
  add_column_sums<T>(launch, partial, blocks, width, o.dweight, o.accumulate_weights);
  if constexpr (kKind == NormKind::layer) {
    add_column_sums<T>(launch, bias_partial, blocks, width, o.dbias, o.accumulate_weights);
  }
}

}  // namespace

void norm_forward(const Launch& launch, const NormForward& o) {
  for_dtype(o.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        o.x.width(),
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          o.kind == NormKind::rms ? run_forward<T, kW, NormKind::rms>(launch, o)
                                  : run_forward<T, kW, NormKind::layer>(launch, o);
        },
        o.x, o.branch, o.sum, o.weight, o.bias, o.out);
  });
}

void norm_backward(const Launch& launch, const NormBackward& o) {
  for_dtype(o.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        o.x.width(),
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          o.kind == NormKind::rms ? run_backward<T, kW, NormKind::rms>(launch, o)
                                  : run_backward<T, kW, NormKind::layer>(launch, o);
        },
        o.dout, o.x, o.weight, o.dx);
  });
}

std::int64_t norm_workspace(std::int64_t width) {
  // The widest accesses take the fewest threads a row, and so the most blocks.
  const RowShape block = row_shape(width, 8 * kBackwardPacks, kBackwardThreads<4>);
  const int blocks = backward_blocks(kBackwardResident, block);
  return std::int64_t{2} * blocks * width * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace shardplan::validator::cuda
