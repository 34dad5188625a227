// What Adam and AdamW have in common: they differ in where weight decay goes, which costs nothing.
#pragma once

#include "optimizers/rules.h"

namespace shardplan::adam {

inline std::int64_t amsgrad(const Updated& t, const Optimizer& o) {
  return o.amsgrad ? t.numel : 0;
}

/// torch/optim/adam.py _init_group.
inline constexpr std::array kStates{State{"step", StateType::fp32, fused_step}, State{"exp_avg"},
                                    State{"exp_avg_sq"},
                                    State{"max_exp_avg_sq", StateType::plan, amsgrad}};

/// The denominator, of all tensors in a list (_multi_tensor_adam) or of one beside its update.
inline constexpr std::array kListed{Temporary{.of = Temporary::Of::all}};
inline constexpr std::array kLooped{Temporary{.count = 2}};

inline UpdatePasses fused(const Optimizer& o) {
  return {o.amsgrad ? 9.0 : 7.0, 1};
}
inline UpdatePasses operations(const Optimizer& o) {
  return {o.amsgrad ? 24.0 : 21.0, o.amsgrad ? 12 : 11};
}

inline constexpr std::array kVariants{
    Variant{.implementation = OptimizerImplementation::fused, .passes = fused},
    Variant{.implementation = OptimizerImplementation::foreach,
            .passes = operations,
            .temporaries = kListed},
    Variant{.implementation = OptimizerImplementation::for_loop,
            .one_by_one = true,
            .passes = operations,
            .temporaries = kLooped}};

}  // namespace shardplan::adam
