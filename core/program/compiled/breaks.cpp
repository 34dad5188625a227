#include "program/compiled/breaks.h"

#include <algorithm>
#include <string_view>

namespace shardplan::compiled {
namespace {

bool is_hidden(const Op& op) {
  return op.fused != nullptr && (op.kind == OpKind::rotary || op.kind == OpKind::fused_linear_loss);
}

bool is_adapter(const Model& model, const Op& op) {
  return op.weight != kNone && model.parameters[static_cast<std::size_t>(op.weight)].adapter;
}

/// The module that holds the linear before the rotation, with a dot behind. Adapters lie one level
/// deeper, in the linear that they belong to.
std::string_view attention_of(const Model& model, const std::vector<Op>& ops, std::size_t rotary) {
  for (std::size_t i = rotary; i-- > 0;) {
    if (ops[i].kind != OpKind::linear || is_adapter(model, ops[i])) continue;
    const std::string_view name = model.modules[static_cast<std::size_t>(ops[i].module)].name;
    return name.substr(0, name.rfind('.') + 1);
  }
  return {};
}

/// Behind the operation that adds the branch of an adapter, whose second product is `b`, to what
/// the frozen linear has made, and casts the sum (model/layers/adapters.cpp).
std::size_t end_of_adapter(const std::vector<Op>& ops, std::size_t b) {
  std::size_t end = b + 1;
  while (end < ops.size() && ops[end].kind != OpKind::add) ++end;
  ++end;
  if (end < ops.size() && ops[end].kind == OpKind::to_like) ++end;
  return std::min(end, ops.size());
}

bool is_int8(const Model& model, const Op& op) {
  return op.kind == OpKind::linear && op.weight != kNone &&
         format_of(model.parameters[static_cast<std::size_t>(op.weight)].stored).casts_inputs;
}

template <typename Is>
bool any_op(const Segment& segment, Is&& is) {
  return std::any_of(segment.graph.ops().begin(), segment.graph.ops().end(), is);
}

bool has_int8(const Model& model) {
  return std::any_of(model.segments.begin(), model.segments.end(), [&](const Segment& segment) {
    return any_op(segment, [&](const Op& op) { return is_int8(model, op); });
  });
}

std::vector<std::int32_t> parts_at_int8(const Model& model, const Segment& segment) {
  const std::vector<Op>& ops = segment.graph.ops();
  const bool any = any_op(segment, [&](const Op& op) { return is_int8(model, op); });
  if (!any && &segment != &model.segments.back()) return {};
  std::vector<std::int32_t> parts;
  std::int32_t part = 0;
  std::size_t adapter_end = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool outside = is_int8(model, ops[i]);
    parts.push_back(outside ? kNone : part);
    if (is_adapter(model, ops[i])) adapter_end = end_of_adapter(ops, i);
    if (outside || i + 1 == adapter_end) ++part;
  }
  return parts;
}

}  // namespace

bool breaks_in_layers(const Model& model) {
  const auto rotates = [](const Op& op) {
    return op.fused != nullptr && op.kind == OpKind::rotary;
  };
  return has_int8(model) ||
         std::any_of(model.segments.begin(), model.segments.end(),
                     [&](const Segment& segment) { return any_op(segment, rotates); });
}

std::vector<std::int32_t> parts_at_breaks(const Model& model, const Segment& segment) {
  if (has_int8(model)) return parts_at_int8(model, segment);
  const std::vector<Op>& ops = segment.graph.ops();
  const auto rotates = [](const Op& op) { return op.kind == OpKind::rotary; };
  const auto first_rotary =
      static_cast<std::size_t>(std::find_if(ops.begin(), ops.end(), rotates) - ops.begin());
  std::vector<std::int32_t> parts(ops.size(), 0);
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (is_hidden(ops[i])) parts[i] = kNone;
  if (first_rotary == ops.size()) {
    const bool any = std::any_of(ops.begin(), ops.end(), is_hidden);
    return any ? parts : std::vector<std::int32_t>{};
  }
  const std::string_view attention = attention_of(model, ops, first_rotary);
  const auto is_in = [&](const Op& op) {
    return op.module != kNone &&
           std::string_view(model.modules[static_cast<std::size_t>(op.module)].name)
               .starts_with(attention);
  };
  std::size_t begin = ops.size(), end = 0, last_rotary = first_rotary;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (rotates(ops[i])) last_rotary = i;
    if (!is_in(ops[i])) continue;
    begin = std::min(begin, i);
    end = is_adapter(model, ops[i]) ? end_of_adapter(ops, i) : i + 1;
  }
  for (std::size_t i = begin; i < ops.size(); ++i) {
    if (parts[i] == kNone) continue;
    parts[i] = i < last_rotary ? 1 : i < end ? 2 : 3;
  }
  return parts;
}

std::vector<std::int32_t> parts_at_blocks(const Model& model, const Segment& segment,
                                          bool ends_apart) {
  const bool last = &segment == &model.segments.back();
  if (last && ends_apart) return parts_at_modules(segment);
  const bool called = last || segment.checkpointable;
  return std::vector<std::int32_t>(called ? segment.graph.ops().size() : 0, 0);
}

std::vector<std::int32_t> parts_at_modules(const Segment& segment) {
  std::vector<std::int32_t> parts;
  const Op* before = nullptr;
  // Activations are modules without parameters (transformers/activations.py), which no operation
  // names: of those one that is a single kernel comes before what multiplies it. The sum behind a
  // module's result is the block's; what follows it is the next module's.
  const auto is_sum = [](const Op& x) { return x.kind == OpKind::add && x.in[1] != kNone; };
  const auto together = [&](const Op& x, const Op& y, bool sums) {
    return x.module == y.module && x.kind != OpKind::silu && y.kind != OpKind::silu && !sums;
  };
  std::int32_t last = 0;
  bool sums = false;  // the operation before is such a sum
  for (const Op& op : segment.graph.ops()) {
    // A norm reads its weight among its other operations.
    if (op.kind != OpKind::parameter) {
      if (before == nullptr || !together(*before, op, sums)) ++last;
      sums = is_sum(op) && before != nullptr && before->module != kNone;
      before = &op;
    }
    parts.push_back(is_hidden(op) ? kNone : last);
  }
  return parts;
}

}  // namespace shardplan::compiled
