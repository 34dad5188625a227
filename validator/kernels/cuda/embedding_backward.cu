// The gradient of the embedding table, in a fixed order. The rows of dy are sorted by token (a
// stable sort), so that a token's rows lie together; the sorted rows are cut into chunks of equal
// length, however often each token occurs, and a token that crosses chunks is put together from
// their partial sums at the end. Tokens below 0 have no row; the bits that are sorted by are all
// ones in them, which no row's token has, so that they come last.
#include <cub/device/device_radix_sort.cuh>

#include <bit>

#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kChunk = 32;  // sorted rows that a block adds up
constexpr std::int64_t kAlignment = 256;

/// Where the parts of the scratch begin, in bytes.
struct Scratch {
  std::int64_t sorted_tokens;  // (rows) int32
  std::int64_t order;          // (rows) int32: the row of dy of each sorted token
  std::int64_t identity;       // (rows) int32
  std::int64_t partials;       // (chunks, 2, width) float
  std::int64_t sort;           // what the sort itself needs
  std::int64_t sort_bytes;
  std::int64_t end;
};

Scratch scratch_of(std::int64_t rows, std::int64_t width) {
  const std::int64_t indices = round_up(rows * 4, kAlignment);
  const std::int64_t partials = round_up(ceil_div(rows, kChunk) * 2 * width * 4, kAlignment);
  // A second buffer for keys and values, and counters of each tile.
  const std::int64_t sort_bytes = 3 * indices + (std::int64_t{1} << 20);
  Scratch s{};
  s.order = s.sorted_tokens + indices;
  s.identity = s.order + indices;
  s.partials = s.identity + indices;
  s.sort = s.partials + partials;
  s.sort_bytes = sort_bytes;
  s.end = s.sort + sort_bytes;
  return s;
}

__global__ void identity_kernel(std::int32_t* order, int count) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i < count) order[i] = i;
}

template <class T>
struct SegmentArgs {
  T* dtable;
  const T* dy;
  const std::int32_t* sorted_tokens;
  const std::int32_t* order;
  float* partials;
  int rows;
  int width;
};

/// Adds to the table's row of a token, if it has one. `table` is at the column.
template <class T, int W>
__device__ void add_row(T* table, int token, int width, const float (&sums)[W]) {
  if (token < 0) return;
  T* row = table + std::int64_t{token} * width;
  Pack<T, W> values = load<W>(row);
#pragma unroll
  for (int i = 0; i < W; ++i) values.set(i, values[i] + sums[i]);
  store<W>(row, values);
}

/// The sum of a token that began in an earlier chunk goes to partials[chunk][0], of one that goes
/// on in a later chunk to partials[chunk][1], of all others straight to the table.
template <class T, int W>
__global__ void segment_kernel(SegmentArgs<T> a) {
  const int begin = static_cast<int>(blockIdx.x) * kChunk;
  const int end = min(begin + kChunk, a.rows);
  const int col = static_cast<int>(blockIdx.y * kThreads + threadIdx.x) * W;
  if (col >= a.width) return;
  float* partials = a.partials + std::int64_t{blockIdx.x} * 2 * a.width + col;
  float sums[W] = {};
  bool begins_here = begin == 0 || a.sorted_tokens[begin - 1] != a.sorted_tokens[begin];
  for (int i = begin; i < end; ++i) {
    const int token = a.sorted_tokens[i];
    const Pack<T, W> grad = load<W>(a.dy + std::int64_t{a.order[i]} * a.width + col);
#pragma unroll
    for (int e = 0; e < W; ++e) sums[e] += grad[e];
    const bool ends = i + 1 == a.rows || a.sorted_tokens[i + 1] != token;
    if (!ends && i + 1 < end) continue;
    if (begins_here && ends) {
      add_row<T, W>(a.dtable + col, token, a.width, sums);
    } else {
      float* partial = partials + (begins_here ? a.width : 0);
#pragma unroll
      for (int e = 0; e < W; ++e) partial[e] = sums[e];
    }
#pragma unroll
    for (int e = 0; e < W; ++e) sums[e] = 0.0F;
    begins_here = true;
  }
}

/// For each token that crosses chunks, the chunk where it begins adds the partial sums up.
template <class T, int W>
__global__ void join_kernel(SegmentArgs<T> a) {
  const int chunk = static_cast<int>(blockIdx.x);
  const int begin = chunk * kChunk;
  const int end = begin + kChunk;
  if (end >= a.rows) return;
  const int token = a.sorted_tokens[end - 1];
  const bool goes_on = a.sorted_tokens[end] == token;
  const bool begins_here = begin == 0 || a.sorted_tokens[begin - 1] != token;
  const int col = static_cast<int>(blockIdx.y * kThreads + threadIdx.x) * W;
  if (!goes_on || !begins_here || col >= a.width) return;
  const float* partials = a.partials + col;
  float sums[W];
#pragma unroll
  for (int e = 0; e < W; ++e) sums[e] = partials[(std::int64_t{chunk} * 2 + 1) * a.width + e];
  for (int next = chunk + 1; next * kChunk < a.rows && a.sorted_tokens[next * kChunk] == token;
       ++next) {
#pragma unroll
    for (int e = 0; e < W; ++e) sums[e] += partials[std::int64_t{next} * 2 * a.width + e];
  }
  add_row<T, W>(a.dtable + col, token, a.width, sums);
}

template <class T, int W>
__global__ void position_kernel(T* dpositions, const T* dy, int width, RowPlaces places,
                                std::int64_t batch) {
  const int col = static_cast<int>(blockIdx.y * kThreads + threadIdx.x) * W;
  if (col >= width) return;
  const std::int64_t row = blockIdx.x;
  const std::int64_t at = row * width + col;
  float sums[W] = {};
#pragma unroll 4
  for (std::int64_t b = 0; b < batch; ++b) {
    const Pack<T, W> grad = load<W>(dy + b * places.sequence * width + at);
#pragma unroll
    for (int e = 0; e < W; ++e) sums[e] += grad[e];
  }
  add_row<T, W>(dpositions + col, static_cast<int>(places.of(row)), width, sums);
}

void sort_by_token(const Launch& launch, const Tensor& tokens, std::int64_t vocabulary,
                   const Scratch& at) {
  const auto rows = static_cast<int>(tokens.numel());
  auto* identity = launch.scratch<std::int32_t>(rows, at.identity);
  identity_kernel<<<static_cast<unsigned>(ceil_div(rows, kThreads)), kThreads, 0, launch.stream>>>(
      identity, rows);
  check_launch();
  const int bits = std::bit_width(static_cast<std::uint64_t>(vocabulary));
  const auto sort = [&](void* temporary, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(temporary, bytes, data<std::int32_t>(tokens),
                                           launch.scratch<std::int32_t>(rows, at.sorted_tokens),
                                           identity, launch.scratch<std::int32_t>(rows, at.order),
                                           rows, 0, bits, launch.stream);
  };
  std::size_t bytes = 0;
  cudaError_t error = sort(nullptr, bytes);
  if (bytes > static_cast<std::size_t>(at.sort_bytes)) {
    throw DeviceError("embedding: sorting " + std::to_string(rows) + " tokens takes " +
                      std::to_string(bytes) + " bytes; " + std::to_string(at.sort_bytes) +
                      " were reserved");
  }
  if (error == cudaSuccess) error = sort(launch.scratch<std::byte>(at.sort_bytes, at.sort), bytes);
  if (error != cudaSuccess) {
    throw DeviceError(std::string("embedding: the sort failed: ") + cudaGetErrorString(error));
  }
}

}  // namespace

void embedding_backward(const Launch& launch, const Tensor& dtable, const Tensor& dpositions,
                        const Tensor& dy, const Tensor& tokens, const RowPlaces& places) {
  const Scratch at = scratch_of(dy.rows(), dy.width());
  const auto rows = static_cast<int>(dy.rows());
  const auto cols = static_cast<int>(dy.width());
  sort_by_token(launch, tokens, dtable.rows(), at);
  for_dtype(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        cols,
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          const SegmentArgs<T> args{
              .dtable = data<T>(dtable),
              .dy = data<T>(dy),
              .sorted_tokens = launch.scratch<std::int32_t>(rows, at.sorted_tokens),
              .order = launch.scratch<std::int32_t>(rows, at.order),
              .partials = launch.scratch<float>(ceil_div(rows, kChunk) * 2 * cols, at.partials),
              .rows = rows,
              .width = cols};
          const auto parts = static_cast<unsigned>(ceil_div(cols, kThreads * kW));
          const dim3 grid(static_cast<unsigned>(ceil_div(rows, kChunk)), parts);
          segment_kernel<T, kW><<<grid, kThreads, 0, launch.stream>>>(args);
          join_kernel<T, kW><<<grid, kThreads, 0, launch.stream>>>(args);
          if (!dpositions.empty()) {
            position_kernel<T, kW><<<dim3(static_cast<unsigned>(places.sequence), parts), kThreads,
                                     0, launch.stream>>>(data<T>(dpositions), args.dy, cols, places,
                                                         rows / places.sequence);
          }
        },
        dtable, dpositions, dy);
  });
  check_launch();
}

std::int64_t embedding_workspace(std::int64_t rows, std::int64_t width) {
  return scratch_of(rows, width).end;
}

}  // namespace shardplan::validator::cuda
