// Tiles of 16-bit elements in shared memory and their way to the tensor cores: asynchronous copies,
// ldmatrix and mma.m16n8k16 with fp32 sums. Attention is built from these.
//
// A tile row is kD elements wide. Its 16-byte chunks are permuted by the row number, so that the
// eight rows that one ldmatrix phase reads lie in different banks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace shardplan::validator::cuda {

constexpr int kChunk16 = 8;  // elements of 16 bytes

/// Element offset of a chunk of a row.
template <int kD>
__device__ inline int tile_offset(int row, int chunk) {
  return row * kD + ((chunk ^ (row & 7)) * kChunk16);
}

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes from global to shared memory; zeros if not `valid`.
__device__ inline void copy_async(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(valid ? 16 : 0));
}

__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;");
}

/// Waits until at most kPending groups of this thread are still under way.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
}

/// Starts copying kRows rows, `stride` elements apart; rows from `valid_rows` on and columns from
/// `width` on become zero. All kThreads threads of the block take part.
template <int kD, int kRows, int kThreads, class T>
__device__ void copy_tile(T* tile, const T* from, std::int64_t stride, int valid_rows, int width) {
  constexpr int kChunks = kD / kChunk16;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    const bool valid = row < valid_rows && chunk * kChunk16 < width;
    copy_async(tile + tile_offset<kD>(row, chunk),
               valid ? from + row * stride + chunk * kChunk16 : from, valid);
  }
}

using Fragment = std::uint32_t[4];

__device__ inline void ldmatrix(Fragment& f, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(shared_address(row)));
}

__device__ inline void ldmatrix_transposed(Fragment& f, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(shared_address(row)));
}

/// The 16 × 16 left operand: rows from `row`, inner columns from 16 * step of the tile.
template <int kD, class T>
__device__ void load_left(Fragment& f, const T* tile, int row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ldmatrix(f, tile + tile_offset<kD>(row + lane % 16, step * 2 + lane / 16));
}

/// The right operand of left * tileᵀ: two 16 × 8 pieces (f[0..1], f[2..3]), tile rows from `row` as
/// columns of the product.
template <int kD, class T>
__device__ void load_right_rows(Fragment& f, const T* tile, int row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ldmatrix(f, tile + tile_offset<kD>(row + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
}

/// The right operand of left * tile: tile rows from `row` are summed over, 16 columns from
/// 16 * part as two pieces.
template <int kD, class T>
__device__ void load_right_columns(Fragment& f, const T* tile, int row, int part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ldmatrix_transposed(f, tile + tile_offset<kD>(row + lane % 16, part * 2 + lane / 16));
}

/// sums (16 × 8) += left (16 × 16) * right (16 × 8)
template <class T>
__device__ void multiply_add(float (&sums)[4], const Fragment& left, std::uint32_t right0,
                             std::uint32_t right1) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
}

template <class T>
__device__ std::uint32_t pack_pair(float low, float high) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
}

/// Two neighbouring 16 × 8 products, rounded: the left operand of the next product.
template <class T>
__device__ void round_to_left(Fragment& f, const float (&low)[4], const float (&high)[4]) {
  f[0] = pack_pair<T>(low[0], low[1]);
  f[1] = pack_pair<T>(low[2], low[3]);
  f[2] = pack_pair<T>(high[0], high[1]);
  f[3] = pack_pair<T>(high[2], high[3]);
}

}  // namespace shardplan::validator::cuda
