// Products of linear layers whose operands are cast to 8 bits first: what torchao's float8 linear
// allocates and starts beside the product (torchao 0.18, float8/float8_linear.py).
#pragma once

#include <vector>

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// Operands in 8 bits. Each is cast in fp32: the scaled copy beside the clamped one, then the
/// result (float8_training_tensor.py; float8_utils.py, to_fp8_saturated).
class NarrowOperands {
 public:
  explicit NarrowOperands(Parts& parts) : p_(parts) {}
  NarrowOperands(const NarrowOperands&) = delete;
  NarrowOperands& operator=(const NarrowOperands&) = delete;
  ~NarrowOperands();

  /// Casts `elements` of `type`; the result lives as long as this.
  void cast(std::int64_t elements, DType type, Issue first);
  /// A copy of `elements` in the other order, which lives while one product runs.
  void turn(std::int64_t elements);

 private:
  Parts& p_;
  std::vector<StorageId> held_;
};

/// The forward pass of linear `op`: input and weight.
void narrow_forward(const GraphView& view, const Op& op, NarrowOperands& operands);
/// What its input's gradient is made of: the result's gradient and the weight, turned.
void narrow_for_input(const GraphView& view, const Op& op, NarrowOperands& operands);
/// What its weight's gradient is made of: the result's gradient and the input, both turned.
void narrow_for_weight(const GraphView& view, const Op& op, NarrowOperands& operands);

}  // namespace shardplan::tape
