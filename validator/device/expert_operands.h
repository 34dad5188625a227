// The operands of a layer of experts: which experts a row goes to, where its copies stand in the
// order of experts, and how they come together again.
//
// A row is sent to k experts: k assignments. Each has a slot, a row of a tensor in which an
// expert's rows lie behind each other. A slot without an assignment is a row of zeros.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "memory/tensor.h"

namespace shardplan::validator {

/// Softmax over all experts, and the k largest of each row; of equal ones the first experts. Or
/// evenly: of row r the experts (r k + j) mod experts, j < k, whatever their logits.
struct RouteForward {
  bool renormalise = false;  ///< a row's weights are divided by their sum
  bool evenly = false;
  Tensor weights;  ///< [rows, k] fp32, the largest first
  Tensor experts;  ///< [rows, k] int32
  Tensor balance;  ///< [2, experts] fp32, or absent: each expert's assignments and probabilities
                   ///< are added to what is there
  Tensor logits;   ///< [rows, experts]
};

/// The logits become their gradient.
struct RouteBackward {
  bool renormalise = false;
  Tensor logits;            ///< [rows, experts]
  Tensor dweights;          ///< [rows, k] fp32
  Tensor experts;           ///< [rows, k] int32
  Tensor balance;           ///< [2, experts] fp32, or absent
  float balance_scale = 0;  ///< each probability's gradient has this · balance[0, its expert] more
};

/// Deals out slots in the order of assignments: row by row, and in a row as they are listed.
/// Without a capacity an expert has as many as it is given, and its slots begin where those of the
/// expert before end, at the next `multiple`: slots up to there are rows of zeros. With one, expert
/// e of E has the slots from ((e mod l)·owners + e / l)·capacity on, l = E / owners: what is next
/// to each other goes to another rank each.
struct PlaceRows {
  std::int64_t capacity = 0;  ///< slots of each expert; 0: as many as it is given
  std::int64_t owners = 1;    ///< ranks that divide the experts
  std::int64_t multiple = 1;  ///< of slots, of an expert without a capacity
  Tensor places;   ///< [rows, k] int32: the assignment's slot; −1: its expert has no more
  Tensor rows;     ///< [slots] int32: the slot's row; −1: none
  Tensor counts;   ///< [experts] int32: assignments
  Tensor dropped;  ///< [1] fp32, or absent: assignments without a slot are added
  Tensor experts;  ///< [rows, k] int32
};

/// Slots of an expert that is given so many assignments.
inline std::int64_t slots_given(std::int64_t count, std::int64_t multiple) {
  return round_up(count, multiple);
}

/// out[r] (+)= Σ over r's assignments of weight · slots[its place], those without one left out.
struct CombineRows {
  Tensor out;               ///< [rows, width]
  bool accumulate = false;  ///< adds to what is there
  Tensor slots;             ///< [slots, width]
  Tensor places;            ///< [rows, k] int32
  Tensor weights;           ///< [rows, k] fp32, or absent: 1 each
};

/// Of combining with weights. Slots without an assignment are left as they are.
struct CombineBackward {
  Tensor slots;    ///< [slots, width]; becomes its gradient: weight · dout of the slot's row
  Tensor weights;  ///< [rows, k] fp32; becomes its gradient, 0 of an assignment without a slot
  Tensor places;   ///< [rows, k] int32
  Tensor dout;     ///< [rows, width]
};

}  // namespace shardplan::validator
