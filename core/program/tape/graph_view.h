// A segment's graph with the types and sizes that a run gives its values, and what follows from
// them for an operation. Nothing here allocates or writes anything down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "model/model.h"
#include "program/category.h"
#include "program/tape.h"
#include "program/tape/values.h"

namespace shardplan::tape {

/// The element types and sizes of one run. Values that operations make have none before
/// ForwardPass, or a test, sets them with state().
class GraphView {
 public:
  /// `input`: the type of the chained input. All arguments outlive the view.
  /// `shared_trains`: as in TapeOptions.
  GraphView(const Model& model, const Graph& graph, const Regime& regime, const Sizes& sizes,
            DType input, bool input_needs_grad, const std::vector<bool>* shared_trains = nullptr);

  const Model& model() const { return model_; }
  const Graph& graph() const { return graph_; }
  const Regime& regime() const { return regime_; }
  const Sizes& sizes() const { return sizes_; }
  ValueState& state(ValueId id) { return values_[static_cast<std::size_t>(id)]; }
  const ValueState& state(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  const Parameter& parameter(ParameterId id) const {
    return model_.parameters[static_cast<std::size_t>(id)];
  }
  Extent extent_of(ValueId id) const { return graph_.value(id).extent; }
  /// Whether an op has input `k`. The reference tensor of to_like lends only its dtype.
  static bool reads(const Op& op, std::size_t k) {
    return k < op.in.size() && op.in[k] != kNone && !(op.kind == OpKind::to_like && k > 0);
  }
  ValueId chained_input() const;  ///< kNone where the graph has none

  // Sizes, not yet rounded to allocation units. Throw OverflowError beyond 64 bits.
  std::int64_t bytes_of(Extent extent, DType type) const {
    return checked_mul(elements(extent, sizes_), size_of(type));
  }
  std::int64_t bytes_of(ValueId id, DType type) const { return bytes_of(extent_of(id), type); }
  std::int64_t bytes_of(const Parameter& p, DType type) const {
    return checked_mul(p.numel, size_of(type));
  }
  double count_of(ValueId id) const {  ///< elements
    return static_cast<double>(elements(extent_of(id), sizes_));
  }
  double moved(ValueId id, DType type) const {  ///< bytes that a kernel reads or writes of it
    return static_cast<double>(bytes_of(id, type));
  }
  Category category_of(ValueId id) const {
    return graph_.value(id).logits ? Category::logits_and_loss : Category::activations;
  }

  // Parameters.
  bool trains(ParameterId id) const { return id != kNone && parameter(id).trainable; }
  DType parameter_type(ParameterId id) const;
  /// A linear of the model multiplies by it too, as it is: not by a copy that autocast makes.
  bool is_head_view(ParameterId id) const;

  // Operations.
  bool casts(const Op& op) const { return regime_.autocast() && op.autocast; }
  /// Whether autocast reads the weight of `op` from a copy in the compute type. A function of
  /// autograd that multiplies in a narrow format takes the weight as it is, and casts its input
  /// itself (torchao/float8/float8_linear.py, forward).
  bool casts_weight(const Op& op) const {
    return casts(op) && !parameter(op.weight).quantized() && !multiplies_narrow(op) &&
           parameter_type(op.weight) != regime_.compute;
  }
  bool needs_grad(const Op& op) const;
  DType result_type(const Op& op) const;
  /// The type in which an op reads input `k`: after autocast, or after a cast of its own.
  DType read_type(const Op& op, std::size_t k) const;
  bool is_masked(const Op& op) const;
  /// The additive mask of an op that is masked: Op::mask, or one of all that a causal op computes.
  Extent mask_of(const Op& op) const {
    return op.mask.per > 0 ? op.mask : Extent{1, op.work.scale};
  }
  /// Causal attention is given a mask (TapeOptions::given_mask).
  void give_masks() { given_masks_ = true; }
  /// The type of an OpKind::function's last input.
  DType narrow_type(const Op& op) const;
  const ProductRecipe& recipe() const { return recipe_of(regime_.linear); }
  /// Its operands are cast to fewer bits: a linear of a block, under a recipe that does that.
  bool multiplies_narrow(const Op& op) const {
    return op.kind == OpKind::linear && recipe().cast != OperandCast::none &&
           parameter(op.weight).quantizable;
  }
  /// And its weight comes cast.
  bool has_narrow_weight(const Op& op) const {
    return regime_.weights_narrow && multiplies_narrow(op);
  }
  /// Its input is cast to the 8 bits of its weight.
  bool multiplies_int8(const Op& op) const {
    return op.kind == OpKind::linear && format_of(parameter(op.weight).stored).casts_inputs;
  }
  /// sdpa with fewer key heads than query heads runs fused in 16-bit types only: the fp32 kernel
  /// does not take grouped heads (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp), so PyTorch
  /// falls back to separate operations. A mask makes Hugging Face repeat the heads before the call.
  bool runs_as_math(const Op& op, DType type) const;
  /// Its result is its input's storage, in this run: a view, a cast that has nothing to do.
  bool is_alias(const Op& op, TapeMode mode) const;

 private:
  const Model& model_;
  const Graph& graph_;
  const Regime& regime_;
  const Sizes& sizes_;
  std::vector<ValueState> values_;
  bool given_masks_ = false;
};

}  // namespace shardplan::tape
