#include "program/tape/lent_results.h"

#include <algorithm>

#include "program/tape/checkpoint.h"

namespace shardplan::tape {
namespace {

bool lends(const Parts& p) {
  return p.mode == TapeMode::redo && !reenters(p.options) && !p.graph().lent().empty();
}

}  // namespace

void lend_result(Parts& p, ValueId value) {
  if (lends(p) && std::ranges::find(p.graph().lent(), value) != p.graph().lent().end())
    p.saved.lend(p.view.state(value).storage);
}

void lend_graph(Parts& p) {
  if (!lends(p)) return;
  const Graph& graph = p.graph();
  std::vector<bool> behind(graph.values().size());
  for (const ValueId value : graph.lent()) behind[static_cast<std::size_t>(value)] = true;
  const std::vector<Op>& ops = graph.ops();
  for (std::size_t i = ops.size(); i-- > 0;) {
    const Op& op = ops[i];
    if (!behind[static_cast<std::size_t>(op.out)] || !p.view.state(op.out).needs_grad) continue;
    for (std::size_t k = 0; GraphView::reads(op, k); ++k)
      behind[static_cast<std::size_t>(op.in[k])] = true;
    for (std::size_t k = 0; k < p.saved.count(i); ++k) p.saved.lend(p.saved.at(i, k));
  }
}

void lend_input(Parts& p) {
  if (!p.saved.lends_input()) return;
  const ValueId input = p.view.chained_input();
  const StorageId same = p.temporary(p.view.extent_of(input), p.view.state(input).dtype);
  p.saved.lend(same);
  p.storages.unref(same);
}

}  // namespace shardplan::tape
