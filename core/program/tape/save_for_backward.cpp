// What autograd's nodes keep (tools/autograd/derivatives.yaml).
#include "program/op_rules.h"
#include "program/tape/forward.h"

namespace shardplan::tape {
namespace {

/// What hooks see of a value: attention's heads are transposed, so that their tensors are not
/// contiguous, and a slice is a tensor of its own.
SavedView view_of(const Parts& p, const Op& op, ValueId value, DType type) {
  SavedView view;
  view.strided = op.kind == OpKind::sdpa;
  if (value != kNone && p.view.state(value).sliced) view.part = value;
  if (view.part != kNone) view.bytes = p.view.bytes_of(value, type);
  return view;
}

/// A shared tensor is alive in the backward pass only if autograd keeps it.
void save_value(Parts& p, std::size_t i, ValueId value, StorageId id, const SavedView& view = {}) {
  p.saved.save(i, id, view);
  if (value == kNone) return;
  const std::int32_t shared = p.view.state(value).shared;
  if (id == kExternal && shared != kNone) p.run.saved_shared.push_back(shared);
}

void save_operands(Parts& p, std::size_t i, const Operands& read, const SaveRule& rule) {
  const Op& op = p.graph().ops()[i];
  for (std::size_t k = 0; k < read.count; ++k) {
    const bool other_needs = k == 0 ? read.count > 1 && p.view.state(op.in[1]).needs_grad
                                    : p.view.state(op.in[0]).needs_grad;
    const bool first = rule.first && k == 0;
    if (rule.inputs || first || (rule.crossed && other_needs))
      save_value(p, i, op.in[k], read.storage[k], view_of(p, op, op.in[k], read.type[k]));
  }
  if (rule.output) p.saved.save(i, p.view.state(op.out).storage, view_of(p, op, kNone, DType::f32));
}

/// A product keeps what its weight's gradient needs.
void save_factor(Parts& p, std::size_t i, const Operands& read) {
  const Op& op = p.graph().ops()[i];
  if (p.view.multiplies_int8(op)) return;
  if (p.view.multiplies_narrow(op) && p.view.recipe().cast == OperandCast::kept) return;
  const ValueId in = read.count > 0 ? op.in[0] : kNone;
  // bitsandbytes' products are its own, which DeepSpeed does not replace.
  if (op.kind == OpKind::linear && p.view.regime().zero3_linear &&
      !p.view.parameter(op.weight).quantized()) {
    save_value(p, i, in, in == kNone ? kExternal : p.view.state(in).storage);
  } else if (p.view.trains(op.weight) || op.convolves) {
    save_value(p, i, in, op.kept == kNone ? read.storage[0] : p.view.state(op.kept).storage);
  }
  // bitsandbytes' functions have the weight as an attribute (autograd/_functions.py).
  const bool own = !p.view.casts_weight(op) && !p.view.parameter(op.weight).quantized();
  if (in != kNone && p.view.state(in).needs_grad && own) p.saved.save_resident(i);
}

/// Autocast gives sdpa its mask in the compute type too.
void save_scores_bias(Parts& p, std::size_t i) {
  const ValueId bias = p.graph().ops()[i].scores_bias;
  const ValueState& mask = p.view.state(bias);
  const Regime& regime = p.view.regime();
  if (!regime.autocast() || mask.dtype == regime.compute) {
    save_value(p, i, bias, mask.storage);
    return;
  }
  p.saved.move_in(
      i, p.storages.allocate(p.view.bytes_of(bias, regime.compute), p.view.category_of(bias)));
}

/// What the fused attention returns beside its result, and what it is called with.
void save_attention_side(Parts& p, std::size_t i, const Operands& read) {
  const Op& op = p.graph().ops()[i];
  const Category category = p.view.category_of(op.out);
  if (op.again) {
    if (!op.joined) return;
    p.saved.move_in(i, p.storages.allocate(p.view.bytes_of(op.in[0], read.type[0]) +
                                               p.view.bytes_of(op.in[1], read.type[1]),
                                           category));
    return;
  }
  p.saved.move_in(i, p.allocate_result(op, checked_mul(elements(op.side, p.view.sizes()), 4)),
                  {.element = 4});
  if (p.view.is_masked(op))
    p.saved.move_in(
        i, p.storages.allocate(p.view.bytes_of(p.view.mask_of(op), read.type[0]), category));
}

/// Side results of the other operations, such as statistics of rows, indices and masks.
void save_side(Parts& p, std::size_t i, const Operands& read) {
  const Op& op = p.graph().ops()[i];
  const std::int64_t side = elements(op.side, p.view.sizes());
  const auto keep = [&](std::int64_t bytes) {
    p.saved.move_in(i, p.storages.allocate(bytes, p.view.category_of(op.out)));
  };
  switch (op.kind) {
    case OpKind::layer_norm:
      keep(checked_mul(side, 4));
      keep(checked_mul(side, 4));
      return;
    case OpKind::rms_norm:
      keep(checked_mul(side, 4));
      return;
    case OpKind::vocabulary_loss:
      if (op.fused != nullptr) {
        p.saved.save(i, read.storage[0]);
        return;
      }
      keep(side > 0 ? checked_mul(side, 4) : p.view.bytes_of(op.in[0], read.type[0]));
      return;
    case OpKind::embedding:
    case OpKind::gather_rows:
    case OpKind::gather_columns:
    case OpKind::scatter_rows:
    case OpKind::nll_loss:
      if (side > 0) keep(checked_mul(side, 8));
      return;
    case OpKind::clamp:
    case OpKind::place_rows:
    case OpKind::masked:  // by a mask of all layers, where there is none of its own
      if (side > 0) keep(side);
      return;
    case OpKind::place_elements:  // the mask of tokens
      keep(side);
      return;
    case OpKind::dropout:
      keep(elements(p.view.extent_of(op.out), p.view.sizes()));
      return;
    default:
      return;
  }
}

}  // namespace

void save_for_backward(Parts& p, std::size_t i, const Operands& read, bool as_math) {
  const Op& op = p.graph().ops()[i];
  save_operands(p, i, read, as_math ? SaveRule{} : save_rule(op.kind));
  if (op.kind == OpKind::linear || op.kind == OpKind::grouped_linear) save_factor(p, i, read);
  if (op.scores_bias != kNone) save_scores_bias(p, i);
  if (op.kind != OpKind::sdpa)
    save_side(p, i, read);
  else if (!as_math)
    save_attention_side(p, i, read);
}

}  // namespace shardplan::tape
