// A unit in one pass.
#pragma once

#include "engine/gradients.h"

namespace shardplan::validator {

/// A unit's parameters, and in a backward pass where their gradients go: nowhere if it is frozen.
struct UnitTensors {
  const Unit* unit = nullptr;
  Tensor weights;
  OpenGradient gradient;

  Tensor weight(int index) const { return unit->parameter(weights, index); }
  /// Nothing where there is no unit.
  Tensor slope(int index) const {
    return unit == nullptr ? Tensor{} : unit->parameter(gradient.flat, index);
  }
};

}  // namespace shardplan::validator
