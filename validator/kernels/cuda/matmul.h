// What descriptions of matrix products for cuBLASLt are made of.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>

#include "kernels/cuda/cuda_check.h"
#include "memory/tensor.h"

namespace shardplan::validator::cuda {

inline cudaDataType_t matmul_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      throw DeviceError("matrix products work on fp32, bf16, fp16 and fp8 alone");
  }
}

template <class T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, T value) {
  check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         T value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

/// Columns lie one after the other, `stride` elements apart.
struct MatmulExtent {
  std::int64_t rows, columns, stride;
  std::int64_t bands = 1;  ///< as many matrices, each behind the columns of the one before
};

struct MatmulLayout {
  MatmulLayout(DType dtype, const MatmulExtent& of) {
    check(
        cublasLtMatrixLayoutCreate(&layout, matmul_type(dtype), static_cast<std::uint64_t>(of.rows),
                                   static_cast<std::uint64_t>(of.columns), of.stride),
        "cublasLtMatrixLayoutCreate");
    if (of.bands == 1) return;
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(of.bands));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, of.stride * of.columns);
  }
  ~MatmulLayout() { cublasLtMatrixLayoutDestroy(layout); }
  MatmulLayout(const MatmulLayout&) = delete;
  MatmulLayout& operator=(const MatmulLayout&) = delete;

  /// Of one band.
  void resize(const MatmulExtent& to) const {
    set(CUBLASLT_MATRIX_LAYOUT_ROWS, static_cast<std::uint64_t>(to.rows));
    set(CUBLASLT_MATRIX_LAYOUT_COLS, static_cast<std::uint64_t>(to.columns));
    set(CUBLASLT_MATRIX_LAYOUT_LD, to.stride);
  }

  cublasLtMatrixLayout_t layout = nullptr;

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t attribute, T value) const {
    check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
          "cublasLtMatrixLayoutSetAttribute");
  }
};

enum class Tiles : std::uint8_t {
  any,
  even,  ///< of 256 × 128, where the heuristic offers them
};

inline bool has_even_tiles(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint32_t tile = 0;
  std::size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile,
                                             sizeof(tile), &written),
        "cublasLtMatmulAlgoConfigGetAttribute");
  return tile == CUBLASLT_MATMUL_TILE_256x128;
}

/// What cuBLASLt's heuristic thinks the fastest with `workspace` bytes and operands at multiples of
/// `alignment` bytes. Returns why there is none; a caller says what it was for.
inline cublasStatus_t choose_algorithm(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                       const MatmulLayout& a, const MatmulLayout& b,
                                       const MatmulLayout& c, std::int64_t workspace,
                                       std::int64_t alignment, cublasLtMatmulAlgo_t& choice,
                                       Tiles tiles = Tiles::any) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace));
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, operand, static_cast<std::uint32_t>(alignment));
  int found = 0;
  std::array<cublasLtMatmulHeuristicResult_t, 8> offered{};  // the best first
  const int asked = tiles == Tiles::any ? 1 : static_cast<int>(offered.size());
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, description, a.layout, b.layout, c.layout, c.layout,
                                     preference, asked, offered.data(), &found);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  choice = offered.front().algo;
  if (tiles == Tiles::any) return CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < found; ++i)
    if (has_even_tiles(offered[static_cast<std::size_t>(i)].algo)) {
      choice = offered[static_cast<std::size_t>(i)].algo;
      break;
    }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace shardplan::validator::cuda
