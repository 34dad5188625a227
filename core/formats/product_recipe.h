// What linear layers multiply in where that is narrower than the type they compute in: one row a
// recipe, by the names that jobs use.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "formats/dtype.h"

namespace shardplan {

enum class LinearRecipe : std::uint8_t {
  computed,
  fp8_tensorwise,
  fp8_rowwise,
  fp8_delayed,
  mxfp8,
  nvfp4,
};

struct ProductRecipe {
  std::string_view name;  ///< as jobs write it
  std::string_view words;
  bool narrows = false;      ///< operands are cast to 8 bits for each product
  bool by_rows = false;      ///< with a scale for each row or column; else one for the tensor
  std::string_view unknown;  ///< why it cannot be estimated; empty: it can
  std::string_view source;
};

/// Both operands' widths and the number of tokens must be multiples of it: torch._scaled_mm stops
/// at others (aten/src/ATen/native/cuda/ScaledBlas.cpp), and torchao pads only if asked.
inline constexpr std::int64_t kNarrowMultiple = 16;

/// By LinearRecipe. torchao's float8 training keeps inputs and weights in the type they have and
/// casts them anew for each of a linear's three products: it saves no memory, but time.
inline constexpr std::array<ProductRecipe, 6> kProductRecipes{{
    {.name = "bf16", .words = "as computed"},
    {.name = "fp8-tensorwise",
     .words = "fp8 with a scale for each tensor",
     .narrows = true,
     .source = "torchao 0.18, float8/float8_linear.py"},
    {.name = "fp8-rowwise",
     .words = "fp8 with a scale for each row",
     .narrows = true,
     .by_rows = true,
     .source = "torchao 0.18, float8/float8_linear.py"},
    {.name = "fp8-delayed",
     .words = "fp8 with delayed scaling",
     .unknown =
         "Transformer Engine's delayed scaling keeps weights in fp8 beside their masters and "
         "histories of maxima, which is not modelled yet"},
    {.name = "mxfp8",
     .words = "MXFP8",
     .unknown = "the published figures (torchtitan, Llama-3-8B on four GB200: 179.94 GiB, 174.49 "
                "in bf16) say that it saves no memory; no run confirms a model of it yet"},
    {.name = "nvfp4",
     .words = "NVFP4",
     .unknown = "the published figure (torchtitan, Llama-3-8B on four GB200: 110.95 GiB, 174.49 in "
                "bf16) is all that is known of it; no run confirms a model yet"},
}};

constexpr const ProductRecipe& recipe_of(LinearRecipe recipe) {
  return kProductRecipes[static_cast<std::size_t>(recipe)];
}

constexpr std::string_view name_of(LinearRecipe recipe) {
  return recipe_of(recipe).name;
}

}  // namespace shardplan
