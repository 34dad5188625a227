// Matrices of 8-bit floating point from wider ones: their scales, and their elements as they lie or
// turned, which products on Hopper read alone (a row of k numbers for each row and column of the
// result).
#include <cuda_fp8.h>

#include "device/fp8.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 8 * 132;   // of a pass over a whole matrix
constexpr int kTile = 128;         // rows and columns that a block turns
constexpr int kSide = 16;          // bytes of an access, which divide every side
constexpr int kVector = 8;         // elements that a thread reads at a time
constexpr int kWords = kTile / 4;  // of a row of a tile
constexpr int kPad = 4;            // words between groups of kSide rows: other banks

struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// As fp8_scale() of device/fp8.h.
__device__ inline float scale_of(float magnitude, float largest, bool power_of_two) {
  const double least = fmax(static_cast<double>(magnitude), kLeastFp8Magnitude);
  const auto scale = static_cast<float>(static_cast<double>(largest) / least);
  return power_of_two ? __uint_as_float(__float_as_uint(scale) & 0x7F800000U) : scale;
}

template <__nv_fp8_interpretation_t F>
__device__ inline std::uint32_t encode(float a, float b, float c, float d) {
  const std::uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, F);
  const std::uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, F);
  return high << 16U | low;
}

/// Eight neighbours, by accesses of 16 bytes.
template <class T>
struct Eight {
  static constexpr int kPacks = kVector / kWidth<T>;
  Pack<T, kWidth<T>> packs[kPacks];

  __device__ Eight() {}  // read() follows
  __device__ explicit Eight(const T* from) { read(from); }
  __device__ void read(const T* from) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) packs[i] = load<kWidth<T>>(from + i * kWidth<T>);
  }
  __device__ float operator[](int i) const {
    return packs[i / kWidth<T>][i % kWidth<T>];
  }
  /// scale(i) of element i.
  template <__nv_fp8_interpretation_t F, class Scale>
  __device__ uint2 scaled(Scale&& scale) const {
    const Eight& x = *this;
    return {encode<F>(x[0] * scale(0), x[1] * scale(1), x[2] * scale(2), x[3] * scale(3)),
            encode<F>(x[4] * scale(4), x[5] * scale(5), x[6] * scale(6), x[7] * scale(7))};
  }
};

template <class T>
__global__ void maxima_kernel(const T* x, std::int64_t vectors, float* maxima) {
  __shared__ float scratch[kThreads / kWarp];
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  float largest[2] = {};
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < vectors; i += step) {
    const Eight<T> values(x + i * kVector);
#pragma unroll
    for (int e = 0; e < kVector; ++e) largest[e % 2] = fmaxf(largest[e % 2], fabsf(values[e]));
  }
  const float all = block_reduce(fmaxf(largest[0], largest[1]), Max{}, 0.0F, scratch);
  if (threadIdx.x == 0) maxima[blockIdx.x] = all;
}

__device__ inline float largest_of(const float* maxima, int count, float* scratch) {
  float all = 0.0F;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) all = fmaxf(all, maxima[i]);
  return block_reduce(all, Max{}, 0.0F, scratch);
}

__global__ void largest_kernel(const float* maxima, int count, float* largest) {
  __shared__ float scratch[kThreads / kWarp];
  const float all = largest_of(maxima, count, scratch);
  if (threadIdx.x == 0) *largest = all;
}

__global__ void scale_kernel(const float* maxima, int count, float largest, float* scales) {
  __shared__ float scratch[kThreads / kWarp];
  const float all = largest_of(maxima, count, scratch);
  if (threadIdx.x != 0) return;
  const float scale = scale_of(all, largest, false);
  scales[0] = 1.0F / scale;
  scales[1] = scale;
}

/// From the end, which is still in the cache when the scale was found just before.
template <class T, __nv_fp8_interpretation_t F>
__global__ void cast_kernel(const T* from, std::int64_t vectors, const float* scales,
                            std::uint8_t* to) {
  const std::int64_t block = gridDim.x - 1 - std::int64_t{blockIdx.x};
  const std::int64_t i = block * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const float scale = scales[1];
  const Eight<T> low(from + i * kSide), high(from + i * kSide + kVector);
  const auto same = [&](int) { return scale; };
  const uint2 a = low.template scaled<F>(same), b = high.template scaled<F>(same);
  *reinterpret_cast<uint4*>(to + i * kSide) = make_uint4(a.x, a.y, b.x, b.y);
}

/// Of a row, which all threads of a block read together.
template <class T>
__device__ inline float row_maximum(const T* x, std::int64_t columns, float* scratch) {
  float most = 0.0F;
  for (std::int64_t c = std::int64_t{threadIdx.x} * kVector; c < columns;
       c += std::int64_t{kThreads} * kVector) {
    const Eight<T> values(x + c);
#pragma unroll
    for (int e = 0; e < kVector; ++e) most = fmaxf(most, fabsf(values[e]));
  }
  return block_reduce(most, Max{}, 0.0F, scratch);
}

template <class T>
__global__ void row_maxima_kernel(const T* from, std::int64_t columns, float* maxima) {
  __shared__ float scratch[kThreads / kWarp];
  const float most = row_maximum(from + blockIdx.x * columns, columns, scratch);
  if (threadIdx.x == 0) maxima[blockIdx.x] = most;
}

/// A block a row. Where it finds the scale it reads the row twice, the second time from the cache.
template <class T, __nv_fp8_interpretation_t F, bool kScaled>
__global__ void row_kernel(const T* from, std::int64_t columns, float largest, float* scales,
                           std::uint8_t* to) {
  const std::int64_t row = blockIdx.x;
  const T* x = from + row * columns;
  float scale;
  if constexpr (kScaled) {
    scale = scales[gridDim.x + row];
  } else {
    __shared__ float scratch[kThreads / kWarp];
    scale = scale_of(row_maximum(x, columns, scratch), largest, true);
    if (threadIdx.x == 0) {
      scales[row] = 1.0F / scale;
      scales[gridDim.x + row] = scale;
    }
  }
  for (std::int64_t c = std::int64_t{threadIdx.x} * kVector; c < columns;
       c += std::int64_t{kThreads} * kVector)
    *reinterpret_cast<uint2*>(to + row * columns + c) =
        Eight<T>(x + c).template scaled<F>([&](int) { return scale; });
}

/// Magnitudes as unsigned numbers have their order. maxima: [columns], zero before.
template <class T>
__global__ void column_maxima_kernel(const T* from, std::int64_t rows, std::int64_t columns,
                                     std::int64_t rows_of_block, unsigned* maxima) {
  const std::int64_t c = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kVector;
  if (c >= columns) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * rows_of_block;
  const std::int64_t end = first + rows_of_block < rows ? first + rows_of_block : rows;
  float most[kVector] = {};
#pragma unroll 4
  for (std::int64_t r = first; r < end; ++r) {
    const Eight<T> values(from + r * columns + c);
#pragma unroll
    for (int e = 0; e < kVector; ++e) most[e] = fmaxf(most[e], fabsf(values[e]));
  }
#pragma unroll
  for (int e = 0; e < kVector; ++e) atomicMax(maxima + c + e, __float_as_uint(most[e]));
}

/// In the place of the maxima.
__global__ void column_scales_kernel(float* scales, std::int64_t columns, float largest) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= columns) return;
  const float scale = scale_of(scales[i], largest, true);
  scales[i] = 1.0F / scale;
  scales[columns + i] = scale;
}

/// found: [ranks, step], of which a matrix's numbers begin at `found`. scales: [2, count].
__global__ void join_kernel(const float* found, int ranks, std::int64_t step, std::int64_t count,
                            float largest, bool power_of_two, float* scales) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  float all = 0.0F;
  for (int rank = 0; rank < ranks; ++rank) all = fmaxf(all, found[rank * step + i]);
  const float scale = scale_of(all, largest, power_of_two);
  scales[i] = 1.0F / scale;
  scales[count + i] = scale;
}

struct Turn {
  std::int64_t rows, columns;
  const float* scales;  // [2, 1], or [2, columns]
  std::uint8_t* to;     // as it lies, or null
  std::uint8_t* turned;
};

/// Four rows of four bytes become four columns.
__device__ inline void turn_words(const std::uint32_t (&rows)[4], std::uint32_t (&columns)[4]) {
  const std::uint32_t ab = __byte_perm(rows[0], rows[1], 0x5140);
  const std::uint32_t cd = __byte_perm(rows[2], rows[3], 0x5140);
  const std::uint32_t ab_high = __byte_perm(rows[0], rows[1], 0x7362);
  const std::uint32_t cd_high = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(ab, cd, 0x5410);
  columns[1] = __byte_perm(ab, cd, 0x7632);
  columns[2] = __byte_perm(ab_high, cd_high, 0x5410);
  columns[3] = __byte_perm(ab_high, cd_high, 0x7632);
}

__device__ inline int tile_word(int row, int word) {
  return row * kWords + row / kSide * kPad + word;
}

/// A tile: in by rows, rounded, through shared memory, out by columns. A warp writes 128 bytes of
/// each of four columns at a time.
template <class T, __nv_fp8_interpretation_t F, bool kByColumns>
__global__ void turn_kernel(const T* from, Turn o) {
  __shared__ std::uint32_t tile[kTile * kWords + kTile / kSide * kPad];
  const std::int64_t across = ceil_div(o.columns, std::int64_t{kTile});
  const std::int64_t block = gridDim.x - 1 - std::int64_t{blockIdx.x};  // see cast_kernel
  const std::int64_t first_row = block / across * kTile, first_column = block % across * kTile;
  const int t = static_cast<int>(threadIdx.x);

  constexpr int kAcross = kTile / kVector;
  const int vector = t % kAcross;
  const std::int64_t c = first_column + vector * kVector;
  if (c < o.columns) {
    float scales[kByColumns ? kVector : 1];
#pragma unroll
    for (int i = 0; i < (kByColumns ? kVector : 1); ++i)
      scales[i] = o.scales[kByColumns ? o.columns + c + i : 1];
    // All rows on their way before the first is used.
    constexpr int kRows = kTile * kAcross / kThreads;
    Eight<T> values[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::int64_t row = first_row + t / kAcross + i * (kThreads / kAcross);
      if (row < o.rows) values[i].read(from + row * o.columns + c);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = t / kAcross + i * (kThreads / kAcross);
      const uint2 both =
          values[i].template scaled<F>([&](int e) { return scales[kByColumns ? e : 0]; });
      if (o.to != nullptr && first_row + row < o.rows)
        *reinterpret_cast<uint2*>(o.to + (first_row + row) * o.columns + c) = both;
      *reinterpret_cast<uint2*>(tile + tile_word(row, 2 * vector)) = both;
    }
  }
  __syncthreads();

  const int lane = t % kWarp;
  const int row = lane / 4 * kSide, word = t / kWarp * 4 + lane % 4;
  if (first_row + row >= o.rows || first_column + 4 * word >= o.columns) return;
  std::uint32_t columns[4][kSide / 4];
#pragma unroll
  for (int i = 0; i < kSide / 4; ++i) {
    std::uint32_t rows[4], turned[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) rows[j] = tile[tile_word(row + 4 * i + j, word)];
    turn_words(rows, turned);
#pragma unroll
    for (int j = 0; j < 4; ++j) columns[j][i] = turned[j];
  }
  std::uint8_t* to = o.turned + (first_column + 4 * word) * o.rows + first_row + row;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    *reinterpret_cast<uint4*>(to + j * o.rows) =
        make_uint4(columns[j][0], columns[j][1], columns[j][2], columns[j][3]);
}

unsigned blocks_of(std::int64_t items) {
  return static_cast<unsigned>(ceil_div(items, std::int64_t{kThreads}));
}

/// The largest magnitudes of parts of a matrix: how many, in scratch.
template <class T>
int find_maxima(const Launch& launch, const Tensor& from, float* maxima) {
  const std::int64_t vectors = from.numel() / kVector;
  const auto blocks = std::min<unsigned>(blocks_of(vectors), kBlocks);
  maxima_kernel<T><<<blocks, kThreads, 0, launch.stream>>>(data<T>(from), vectors, maxima);
  check_launch();
  return static_cast<int>(blocks);
}

/// The whole matrix's scale.
template <class T>
void find_scale(const Launch& launch, const Fp8Cast& o) {
  float* maxima = launch.scratch<float>(kBlocks);
  const int count = find_maxima<T>(launch, o.from, maxima);
  scale_kernel<<<1, kThreads, 0, launch.stream>>>(maxima, count, largest_fp8(o.type),
                                                  data<float>(o.to.scales));
  check_launch();
}

template <class T>
void find_column_maxima(const Launch& launch, const Tensor& from, float* maxima) {
  const std::int64_t rows = from.rows(), columns = from.width();
  const auto bytes = static_cast<std::size_t>(columns) * sizeof(float);
  if (cudaMemsetAsync(maxima, 0, bytes, launch.stream) != cudaSuccess)
    throw DeviceError("memory of the GPU could not be cleared");
  const unsigned across = blocks_of(columns / kVector);
  const std::int64_t rows_of_block =
      std::max<std::int64_t>(4 * kSide, ceil_div(rows * across, kBlocks));
  const dim3 grid(across, static_cast<unsigned>(ceil_div(rows, rows_of_block)));
  column_maxima_kernel<T><<<grid, kThreads, 0, launch.stream>>>(
      data<T>(from), rows, columns, rows_of_block, reinterpret_cast<unsigned*>(maxima));
  check_launch();
}

template <class T, __nv_fp8_interpretation_t F, bool kByColumns>
void turn(const Launch& launch, const Fp8Cast& o, const Tensor& scales, std::uint8_t* to) {
  const Turn args{o.from.rows(), o.from.width(), data<float>(scales), to,
                  data<std::uint8_t>(o.turned.values)};
  const std::int64_t tiles = ceil_div(args.rows, kTile) * ceil_div(args.columns, kTile);
  turn_kernel<T, F, kByColumns>
      <<<static_cast<unsigned>(tiles), kThreads, 0, launch.stream>>>(data<T>(o.from), args);
  check_launch();
}

template <class T, __nv_fp8_interpretation_t F>
void cast_whole(const Launch& launch, const Fp8Cast& o) {
  if (!o.scaled) find_scale<T>(launch, o);
  if (!o.turned.values.empty())
    return turn<T, F, false>(launch, o, o.to.scales,
                             o.to.values.empty() ? nullptr : data<std::uint8_t>(o.to.values));
  if (o.to.values.empty()) return;
  const std::int64_t vectors = o.from.numel() / kSide;
  cast_kernel<T, F><<<blocks_of(vectors), kThreads, 0, launch.stream>>>(
      data<T>(o.from), vectors, data<float>(o.to.scales), data<std::uint8_t>(o.to.values));
  check_launch();
}

template <class T, __nv_fp8_interpretation_t F>
void cast_rows(const Launch& launch, const Fp8Cast& o) {
  const std::int64_t rows = o.from.rows(), columns = o.from.width();
  const float largest = largest_fp8(o.type);
  if (!o.to.values.empty()) {
    const auto kernel = o.scaled ? row_kernel<T, F, true> : row_kernel<T, F, false>;
    kernel<<<static_cast<unsigned>(rows), kThreads, 0, launch.stream>>>(
        data<T>(o.from), columns, largest, data<float>(o.to.scales),
        data<std::uint8_t>(o.to.values));
    check_launch();
  }
  if (o.turned.values.empty()) return;
  if (!o.scaled) {
    float* scales = data<float>(o.turned.scales);
    find_column_maxima<T>(launch, o.from, scales);
    column_scales_kernel<<<blocks_of(columns), kThreads, 0, launch.stream>>>(scales, columns,
                                                                             largest);
    check_launch();
  }
  turn<T, F, true>(launch, o, o.turned.scales, nullptr);
}

}  // namespace

namespace {

void check_sides(const Tensor& from) {
  if (from.rows() % kSide != 0 || from.width() % kSide != 0)
    throw DeviceError("16 does not divide the sides of a matrix for products in fp8");
}

}  // namespace

void find_magnitudes(const Launch& launch, const Fp8Magnitudes& o) {
  check_sides(o.from);
  for_dtype(o.from.dtype, [&](auto zero) {
    using T = decltype(zero);
    float* to = data<float>(o.to);
    switch (o.over) {
      case Fp8Over::whole: {
        float* maxima = launch.scratch<float>(kBlocks);
        const int count = find_maxima<T>(launch, o.from, maxima);
        largest_kernel<<<1, kThreads, 0, launch.stream>>>(maxima, count, to);
        return check_launch();
      }
      case Fp8Over::rows:
        row_maxima_kernel<T><<<static_cast<unsigned>(o.from.rows()), kThreads, 0, launch.stream>>>(
            data<T>(o.from), o.from.width(), to);
        return check_launch();
      case Fp8Over::columns:
        return find_column_maxima<T>(launch, o.from, to);
    }
  });
}

void join_scales(const Launch& launch, const Fp8JointScales& o) {
  const Tensor& found = o.found.of;
  join_kernel<<<blocks_of(o.found.count), kThreads, 0, launch.stream>>>(
      data<float>(found) + o.found.first, static_cast<int>(found.rows()), found.width(),
      o.found.count, largest_fp8(o.type), o.power_of_two, data<float>(o.to));
  check_launch();
}

void cast_fp8(const Launch& launch, const Fp8Cast& o) {
  check_sides(o.from);
  for_dtype(o.from.dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool wide = o.type == DType::e5m2;  // the range
    if (o.by_rows)
      return wide ? cast_rows<T, __NV_E5M2>(launch, o) : cast_rows<T, __NV_E4M3>(launch, o);
    wide ? cast_whole<T, __NV_E5M2>(launch, o) : cast_whole<T, __NV_E4M3>(launch, o);
  });
}

}  // namespace shardplan::validator::cuda
