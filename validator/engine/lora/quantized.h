// Matrices of a block and of its experts that are kept in 4 bits: one at a time is widened, to be
// multiplied with.
#pragma once

#include "device/backend.h"
#include "engine/unit_tensors.h"
#include "model/adapter_layout.h"

namespace shardplan::validator {

/// Those of one block in one pass; without units there are none.
struct BlockQuantized {
  UnitTensors unit, experts;  ///< the block's own, and its experts'
  Tensor room;                ///< [elements of the largest matrix], which all take turns in

  bool any() const { return unit.unit != nullptr; }
  bool any_experts() const { return experts.unit != nullptr; }
  /// In `room`, until the next one is asked for.
  Tensor weight(Backend& device, Linear l) const;
  /// The same of one of the experts here; l: up or down.
  Tensor weight(Backend& device, Linear l, std::int64_t expert) const;
};

/// The parts of a matrix among the bytes of its unit.
Nf4Matrix nf4_matrix(const Unit& unit, const QuantizedMatrix& m, const Tensor& bytes);

/// A matrix's place in the room that all take turns in.
Tensor room_of(const QuantizedMatrix& m, const Tensor& room);

/// Elements of the largest matrix of the units; 0: none is kept in 4 bits.
std::int64_t largest_quantized(const std::vector<Unit>& units);

}  // namespace shardplan::validator
