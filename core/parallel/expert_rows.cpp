#include "parallel/expert_rows.h"

namespace shardplan {

std::vector<bool> rows_for_experts(const Graph& graph, const Cuts& cuts) {
  std::vector<bool> rows(graph.values().size(), false), picked(graph.values().size(), false);
  const auto mark = [&](ValueId value) { rows[static_cast<std::size_t>(value)] = true; };
  bool cut = false;
  for (const Op& op : graph.ops()) {
    if (op.kind == OpKind::gather_rows) picked[static_cast<std::size_t>(op.out)] = true;
    if (op.kind == OpKind::grouped_linear && cuts.of(op.weight) != Cut::whole) {
      mark(op.in[0]);
      cut = true;
    }
    if (!cut) continue;
    if (op.kind == OpKind::gated && op.in[2] != kNone) mark(op.in[2]);
    if (op.kind == OpKind::mul && op.in[1] != kNone && picked[static_cast<std::size_t>(op.in[1])])
      mark(op.in[1]);
  }
  return rows;
}

}  // namespace shardplan
