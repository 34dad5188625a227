// Element types of everything a training step keeps.
#pragma once

#include <optional>
#include <string>

#include "formats/dtype.h"
#include "formats/product_recipe.h"

namespace shardplan {

/// With `compute` different from `params`, matrix products run under torch.autocast (or the
/// framework's mixed-precision policy) in `compute`; with `master` set, the optimizer updates a
/// copy of the parameters in that type (2Ψ+2Ψ+12Ψ for 16-bit parameters and Adam).
struct Precision {
  std::string name = "bf16-master";  ///< the preset, or "custom"
  DType params = DType::bf16;
  DType compute = DType::bf16;
  DType gradients = DType::bf16;
  std::optional<DType> master = DType::f32;
  DType optimizer_states = DType::f32;
  std::optional<DType> reduce;  ///< of gradient communication; absent: as gradients

  LinearRecipe linear = LinearRecipe::computed;  ///< of the linear layers inside the blocks

  bool autocast() const { return compute != params; }
};

}  // namespace shardplan
