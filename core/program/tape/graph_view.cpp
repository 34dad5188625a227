#include "program/tape/graph_view.h"

#include <algorithm>

#include "program/op_rules.h"

namespace shardplan::tape {

GraphView::GraphView(const Model& model, const Graph& graph, const Regime& regime,
                     const Sizes& sizes, DType input, bool input_needs_grad,
                     const std::vector<bool>* shared_trains)
    : model_(model), graph_(graph), regime_(regime), sizes_(sizes), values_(graph.values().size()) {
  for (const Input& in : graph.inputs()) {
    ValueState& v = state(in.value);
    if (in.kind == InputKind::chained) {
      v.dtype = input;
      v.needs_grad = input_needs_grad;
    } else {
      const Shared& shared = model.shared[static_cast<std::size_t>(in.shared)];
      v.dtype = shared.f32 ? DType::f32 : regime.params;
      v.needs_grad = shared_trains == nullptr
                         ? shared.needs_grad
                         : (*shared_trains)[static_cast<std::size_t>(in.shared)];
      v.shared = in.shared;
    }
  }
}

ValueId GraphView::chained_input() const {
  for (const Input& in : graph_.inputs())
    if (in.kind == InputKind::chained) return in.value;
  return kNone;
}

DType GraphView::parameter_type(ParameterId id) const {
  const Parameter& p = parameter(id);
  if (p.quantized()) return regime_.widened();
  return p.adapter ? regime_.adapters : regime_.params;
}

bool GraphView::is_head_view(ParameterId id) const {
  for (const Segment& segment : model_.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::linear && op.weight == id) return !casts_weight(op);
  return false;
}

bool GraphView::needs_grad(const Op& op) const {
  if (op.detached) return false;
  if (op.asked) return true;
  if (trains(op.weight) || trains(op.bias)) return true;
  return std::any_of(op.in.begin(), op.in.end(),
                     [&](ValueId in) { return in != kNone && state(in).needs_grad; });
}

DType GraphView::result_type(const Op& op) const {
  const bool autocast = casts(op);
  if (op.only_without_autocast && regime_.autocast()) return state(op.in[0]).dtype;
  const auto in = [&](std::size_t k) { return state(op.in[k]).dtype; };
  switch (op.kind) {
    case OpKind::to_f32:
    case OpKind::softmax_f32:
      return DType::f32;
    case OpKind::to_adapter:
      return regime_.adapters;
    case OpKind::to_like:
      return in(1);
    case OpKind::to_compute:
      return regime_.autocast() ? regime_.compute : in(0);
    case OpKind::embedding:
    case OpKind::parameter:
    case OpKind::grouped_linear:
      return parameter_type(op.weight);
    case OpKind::fused_linear_loss:
    case OpKind::vocabulary_loss:
      return DType::f32;
    case OpKind::compare:
      return DType::b1;
    case OpKind::batch:  // towers cast it to their weights' type
      return regime_.autocast() ? regime_.params : regime_.compute;
    case OpKind::place_rows:
    case OpKind::place_elements:
      return in(0);
    case OpKind::function:
      return narrow_type(op);
    case OpKind::linear:
      if (multiplies_int8(op)) return in(0);
      return autocast && !parameter(op.weight).quantized() ? regime_.compute
                                                           : parameter_type(op.weight);
    case OpKind::matmul:
    case OpKind::sdpa:
      return autocast ? regime_.compute : in(0);
    default:
      break;
  }
  if (autocast && autocast_rule(op.kind) == AutocastRule::full) return DType::f32;
  if (op.fused != nullptr || op.in_place != InPlace::no) return in(0);
  return op.in[1] == kNone ? in(0) : promote(in(0), in(1));
}

DType GraphView::read_type(const Op& op, std::size_t k) const {
  const DType type = state(op.in[k]).dtype;
  if (op.kind == OpKind::grouped_linear) return parameter_type(op.weight);
  if (multiplies_int8(op)) return type;
  if (op.kind == OpKind::linear && parameter(op.weight).quantized())
    return parameter_type(op.weight);
  // ATen's softmax with dtype=float32 fuses the conversion of fp16 only.
  if (op.kind == OpKind::softmax_f32) return type == DType::bf16 ? DType::f32 : type;
  if (!casts(op)) return type;
  switch (autocast_rule(op.kind)) {
    case AutocastRule::low:
      return regime_.compute;
    case AutocastRule::full:
      return DType::f32;
    case AutocastRule::widest:
      break;
  }
  return type;
}

DType GraphView::narrow_type(const Op& op) const {
  DType type = regime_.compute;
  for (const ValueId in : op.in)
    if (in != kNone) type = state(in).dtype;
  return type;
}

bool GraphView::is_masked(const Op& op) const {
  if (given_masks_ && op.kind == OpKind::sdpa && op.causal) return true;
  const bool cached = op.work.scale == Scale::context_scores;
  return op.mask.per > 0 && (cached ? sizes_.context : sizes_.sequence) >= op.mask_from;
}

bool GraphView::runs_as_math(const Op& op, DType type) const {
  return type == DType::f32 && !is_masked(op) && op.scores_bias == kNone &&
         extent_of(op.in[1]).per < extent_of(op.in[0]).per;
}

bool GraphView::is_alias(const Op& op, TapeMode mode) const {
  // The pieces of images are a tower's batch.
  const Scale scale = extent_of(op.out).scale;
  if (op.kind == OpKind::fold_heads && (scale == Scale::patches || scale == Scale::images))
    return sizes_.images == 1;
  const bool evaluates = mode == TapeMode::infer && op.kind == OpKind::dropout;
  const bool has_type = is_cast(op.kind) && result_type(op) == state(op.in[0]).dtype;
  return shardplan::is_alias(op.kind, sizes_) || has_type || evaluates;
}

}  // namespace shardplan::tape
