// Precisions by name: what "bf16-master" means.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "plan/precision.h"

namespace shardplan {

struct PrecisionPreset {
  std::string_view name;
  DType params, compute, gradients, states;
  bool master;  ///< fp32 master weights

  Precision precision() const {
    Precision p;
    p.name = std::string(name);
    p.params = params;
    p.compute = compute;
    p.gradients = gradients;
    p.optimizer_states = states;
    p.master = master ? std::optional(DType::f32) : std::nullopt;
    return p;
  }
};

inline constexpr std::array kPrecisionPresets{
    PrecisionPreset{"fp32", DType::f32, DType::f32, DType::f32, DType::f32, false},
    PrecisionPreset{"bf16-pure", DType::bf16, DType::bf16, DType::bf16, DType::bf16, false},
    PrecisionPreset{"fp16-pure", DType::f16, DType::f16, DType::f16, DType::f16, false},
    PrecisionPreset{"bf16-autocast", DType::f32, DType::bf16, DType::f32, DType::f32, false},
    PrecisionPreset{"fp16-autocast", DType::f32, DType::f16, DType::f32, DType::f32, false},
    PrecisionPreset{"bf16-master", DType::bf16, DType::bf16, DType::bf16, DType::f32, true},
    PrecisionPreset{"fp16-master", DType::f16, DType::f16, DType::f16, DType::f32, true},
};

}  // namespace shardplan
