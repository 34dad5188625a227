// Kernels of engines for experts: which tiles they take, and what of a GPU's rates these reach
// (core/serving/expert_products.h).
#pragma once

#include <array>
#include <cstdint>

namespace shardplan {

/// Tiles of an engine's kernel for experts, in passes of so many tokens at most, or of so many rows
/// of an expert in the mean.
struct ExpertTile {
  std::int64_t most = 0;
  std::int64_t rows = 0;  ///< of an expert that are computed together
  double rate = 0;        ///< of the tensor cores' peak that such tiles reach
};

/// An engine's kernel for experts whose tiles are known (core/serving/expert_products.h). The last
/// tile of each row is that of all larger passes.
struct ExpertKernel {
  std::array<ExpertTile, 4> wide = {};    ///< operands of 16 bits
  std::array<ExpertTile, 2> narrow = {};  ///< of fp8 in blocks of 128 x 128
  double memory_share = 0;  ///< of the memory's rate, what it reads weights at; 0: not known
  double seconds = 0;       ///< of a call beside what it moves and computes
};

/// vLLM 0.25's, without a configuration for the GPU (model_executor/layers/fused_moe/fused_moe.py,
/// get_default_config). Shares and seconds are fitted to every second of 112 shapes on an H100
/// (data/measurements/rates/h100/h100-vllm-experts.json): docs/explanation/serving.md.
inline constexpr ExpertKernel kVllmExperts{
    .wide = {{{32, 16, 0.3}, {96, 32, 0.3}, {512, 64, 0.5}, {0, 128, 0.62}}},
    .narrow = {{{64, 16, 0.2}, {0, 64, 0.28}}},
    .memory_share = 0.9,
    .seconds = 3.5e-6};

/// Its kernel for experts whose weights have few bits, which it widens on the way to products in
/// 16: tiles by the rows of an expert in the mean.
struct WidenedExperts {
  std::array<ExpertTile, 5> tiles = {};
  double memory_share = 0;  ///< as of ExpertKernel; 0: not known
  double seconds = 0;
};

/// vLLM's, Marlin's (vllm/model_executor/layers/fused_moe/fused_marlin_moe.py, which takes the
/// first tile that rows of an expert fill to nine tenths at most). Triton's for MXFP4 on Hopper
/// (triton_kernels/matmul_ogs_details/opt_flags.py: the next power of two, 16 to 128) has nearly
/// the same tiles. The rate is fitted to one published row: docs/explanation/serving.md.
inline constexpr WidenedExperts kMarlinExperts = [] {
  constexpr double kRate = 0.25;
  return WidenedExperts{
      .tiles = {{{7, 8, kRate}, {14, 16, kRate}, {28, 32, kRate}, {43, 48, kRate}, {0, 64, kRate}}},
      .memory_share = kVllmExperts.memory_share,
      .seconds = kVllmExperts.seconds};
}();

}  // namespace shardplan
