// What linear layers multiply in where that is narrower than the type they compute in: one row a
// recipe, by the names that jobs use.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "formats/dtype.h"
#include "formats/peak_rates.h"

namespace shardplan {

enum class LinearRecipe : std::uint8_t {
  computed,
  fp8_tensorwise,
  fp8_rowwise,
  fp8_delayed,
  fp8_current,
  fp8_blockwise,
  mxfp8,
  nvfp4,
};

/// Who casts the operands of a linear's three products, and what becomes of them.
enum class OperandCast : std::uint8_t {
  none,
  eager,  ///< operation by operation in fp32, anew for each product
  fused,  ///< a kernel each, anew for each product
  kept,   ///< a kernel for both directions; the backward pass finds what the forward pass made
};

struct ProductRecipe {
  std::string_view name;  ///< as jobs write it
  std::string_view words;
  OperandCast cast = OperandCast::none;
  bool by_rows = false;           ///< with a scale for each row or column; else one for the tensor
  DType type = DType::e4m3;       ///< of the operands
  std::int64_t block = 0;         ///< elements that share a scale of a byte; 0: no such scales
  std::int64_t layouts = 0;       ///< kept: of the weight, between the passes
  bool maxima_first = false;      ///< kept: the largest value is found before
  bool maxima_of_copies = false;  ///< of weights from copies in fp32
  std::int64_t multiple = 16;     ///< of tokens and of both widths; else the library stops
  PeakRate units = PeakRate::fp8;
  std::string_view wants;          ///< what of a GPU
  std::string_view caveat;         ///< what people should know
  std::string_view library;        ///< that multiplies
  std::string_view megatron = {};  ///< Megatron-LM's word, --fp8-recipe; "": it has none
};

inline constexpr std::string_view kFp8Wants =
    "fp8 units: torch._scaled_mm wants compute capability 8.9 or more";
inline constexpr std::string_view kEagerCaveat =
    "without torch.compile each operand is cast by a dozen kernels in fp32: this is slower than "
    "bf16 unless layers are very wide, and saves no memory";

inline constexpr std::string_view kTransformerEngine = "Transformer Engine";
inline constexpr std::string_view kTransformerEngineCaveat =
    "this rests on reading Transformer Engine, on no run: weights are in 8 bits twice from their "
    "forward to their backward pass, under Megatron-LM for good; scales and histories of maxima, "
    "20 KiB a layer, are not counted";

/// By LinearRecipe.
/// - fp8-tensorwise, fp8-rowwise: torchao 0.18, float8/float8_linear.py. Inputs and weights are
///   kept as they are.
/// - fp8-delayed: Transformer Engine, pytorch/module/linear.py. Input and weight are cast with
///   scales of earlier steps; the backward pass has the input's transpose and both layouts of the
///   weight in 8 bits. fp8-current finds the scales first (Float8CurrentScaling); fp8-blockwise has
///   one in fp32 for each 128 elements (Float8BlockScaling).
/// - mxfp8: torchao 0.18, prototype/moe_training/mxfp8_linear.py, mx_mm, which saves its arguments.
/// - nvfp4: torchao 0.18, prototype/moe_training/nvfp4_training/nvfp4_linear.py, nvfp4_mm_triton,
///   which saves the input's columns and the transposed weight in 4 bits, with their scales.
inline constexpr std::array<ProductRecipe, 8> kProductRecipes{{
    {.name = "bf16", .words = "as computed"},
    {.name = "fp8-tensorwise",
     .words = "fp8 with a scale for each tensor",
     .cast = OperandCast::eager,
     .wants = kFp8Wants,
     .caveat = kEagerCaveat,
     .library = "torch._scaled_mm"},
    {.name = "fp8-rowwise",
     .words = "fp8 with a scale for each row",
     .cast = OperandCast::eager,
     .by_rows = true,
     .wants = kFp8Wants,
     .caveat = kEagerCaveat,
     .library = "torch._scaled_mm"},
    {.name = "fp8-delayed",
     .words = "fp8 with delayed scaling",
     .cast = OperandCast::kept,
     .layouts = 2,
     .wants = "fp8 units: Transformer Engine wants compute capability 8.9 or more",
     .caveat = kTransformerEngineCaveat,
     .library = kTransformerEngine,
     .megatron = "delayed"},
    {.name = "fp8-current",
     .words = "fp8 with current scaling",
     .cast = OperandCast::kept,
     .layouts = 2,
     .maxima_first = true,
     .wants = "fp8 units: Transformer Engine wants compute capability 8.9 or more",
     .caveat = kTransformerEngineCaveat,
     .library = kTransformerEngine,
     .megatron = "tensorwise"},
    {.name = "fp8-blockwise",
     .words = "fp8 with scales of blocks",
     .cast = OperandCast::kept,
     .block = 32,  // bytes of scales: four for each 128 elements
     .layouts = 2,
     .maxima_first = true,
     .wants = "fp8 units: Transformer Engine's blocks want compute capability 9.0 or more",
     .caveat = kTransformerEngineCaveat,
     .library = kTransformerEngine,
     .megatron = "blockwise"},
    {.name = "mxfp8",
     .words = "MXFP8",
     .cast = OperandCast::fused,
     .block = 32,
     .multiple = 32,
     .units = PeakRate::fp4,
     .wants = "units for scaled blocks: torchao 0.18's MXFP8 wants compute capability 10.0",
     .caveat = "this rests on reading torchao 0.18, on no run; it saves no memory (published, with "
               "torch.compile, Llama-3-8B on four GB200: 179.94 GiB, 174.49 in bf16)",
     .library = "torchao's MXFP8"},
    {.name = "nvfp4",
     .words = "NVFP4",
     .cast = OperandCast::kept,
     .type = DType::e2m1,
     .block = 16,
     .layouts = 1,
     .maxima_first = true,
     .maxima_of_copies = true,
     .multiple = 128,
     .units = PeakRate::fp4,
     .wants = "fp4 units: torchao 0.18's NVFP4 wants compute capability 10.0",
     .caveat = "this rests on reading torchao 0.18, on no run (published, with torch.compile, "
               "Llama-3-8B on four GB200: 110.95 GiB, 174.49 in bf16)",
     .library = "torchao's NVFP4"},
}};

constexpr const ProductRecipe& recipe_of(LinearRecipe recipe) {
  return kProductRecipes[static_cast<std::size_t>(recipe)];
}

constexpr std::string_view name_of(LinearRecipe recipe) {
  return recipe_of(recipe).name;
}

}  // namespace shardplan
