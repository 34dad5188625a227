// Products of linear layers whose operands are cast to fewer bits first: what the library that does
// it (formats/product_recipe.h) allocates and starts beside the product.
#pragma once

#include <cstdint>
#include <vector>

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// How what is cast lies in memory: by rows, or as a view of its transpose.
enum class Layout : std::uint8_t { plain, turned };

/// Operands in fewer bits, which live as long as this.
class NarrowOperands {
 public:
  explicit NarrowOperands(Parts& parts) : p_(parts), recipe_(parts.view.recipe()) {}
  NarrowOperands(const NarrowOperands&) = delete;
  NarrowOperands& operator=(const NarrowOperands&) = delete;
  ~NarrowOperands();

  /// Casts `elements` of `type` for one product.
  void cast(std::int64_t elements, DType type, Issue first, Layout layout = Layout::plain);
  /// Casts them for products in both directions; the first `keep` layouts are for the backward
  /// pass.
  void cast_both(std::int64_t elements, DType type, Issue first, std::int64_t keep);
  /// A weight's largest value, through copies in fp32 (_triton_weight_quantize_2d).
  void find_largest(std::int64_t elements, DType type);
  /// A copy of `elements` in the other order, which lives until end_product(); nothing where casts
  /// make that order themselves.
  void turn(std::int64_t elements);
  /// The product has its result: turned copies go (float8_ops.py, preprocess_addmm).
  void end_product();
  /// torchao's product takes the inverse of both scales (float8_ops.py, addmm_float8_unwrapped).
  void invert_scales();
  /// Scales of rows and columns: the product has ones in their place, and torchao multiplies them,
  /// and applies them to a result of `elements` behind it (the same, without fast sums).
  void scale_result(std::int64_t elements);
  /// What the backward pass needs.
  const std::vector<StorageId>& kept() const { return kept_; }

 private:
  /// torchao's float8 casts in fp32: the scaled copy beside the clamped one, then the result
  /// (float8_training_tensor.py; float8_utils.py, to_fp8_saturated).
  void cast_eagerly(std::int64_t elements, DType type, Issue first, Layout layout);
  /// Of a number, or of one for each row.
  void launch_on_scales(std::int32_t kernels);
  /// Elements and their scales; bytes written.
  std::int64_t pack(std::int64_t elements, bool keeps);

  Parts& p_;
  const ProductRecipe& recipe_;
  std::vector<StorageId> held_, kept_, turned_;
};

/// The forward pass of linear `op`: the weight, and the input unless a joint linear `has_input`.
void narrow_forward(const Parts& p, const Op& op, NarrowOperands& operands, bool has_input);
/// What its input's gradient is made of: the result's gradient and the weight, turned.
void narrow_for_input(const GraphView& view, const Op& op, NarrowOperands& operands);
/// What its weight's gradient is made of: the result's gradient and the input, both turned.
void narrow_for_weight(const GraphView& view, const Op& op, NarrowOperands& operands);

}  // namespace shardplan::tape
