#include "program/tape/exchange_rules.h"

#include <algorithm>

namespace shardplan::tape {
namespace {

template <typename Matches>
const Op* first_op(const Graph& graph, Matches&& matches) {
  const auto found = std::find_if(graph.ops().begin(), graph.ops().end(), matches);
  return found == graph.ops().end() ? nullptr : &*found;
}

}  // namespace

bool is_redistribution(const Communication& c) {
  return c.result == ExchangeResult::fresh &&
         (c.forward == Exchange::none) != (c.backward == Exchange::none);
}

std::int64_t payload_of(const GraphView& view, const Op& op, DType type) {
  if (op.exchange.payload.per > 0) return view.bytes_of(op.exchange.payload, type);
  return std::max(view.bytes_of(op.in[0], type), view.bytes_of(op.out, type));
}

std::int32_t last_linear_of(const Graph& graph, ValueId value) {
  std::int32_t last = kNone;
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const Op& op = graph.ops()[i];
    if (std::find(op.in.begin(), op.in.end(), value) == op.in.end()) continue;
    if (op.kind != OpKind::linear) return kNone;
    last = static_cast<std::int32_t>(i);
  }
  return last;
}

const Op* maker_of(const Graph& graph, ValueId value) {
  return first_op(graph, [&](const Op& op) { return op.out == value; });
}

bool is_scattered_next(const Graph& graph, const Op& op) {
  const Op* next = &op + 1;
  return next != graph.ops().data() + graph.ops().size() && next->kind == OpKind::communicate &&
         next->in[0] == op.out && next->exchange.forward == Exchange::reduce_scatter;
}

bool is_gradient_reduced(const Graph& graph, const Op& op) {
  if (op.in[0] == kNone) return false;
  const Op* maker = maker_of(graph, op.in[0]);
  return maker != nullptr && maker->kind == OpKind::communicate &&
         (maker->exchange.backward == Exchange::all_reduce ||
          maker->exchange.backward == Exchange::reduce_scatter);
}

const Op* first_keeper_of(const Graph& graph, ValueId value) {
  return first_op(graph, [&](const Op& op) { return op.kept == value; });
}

}  // namespace shardplan::tape
