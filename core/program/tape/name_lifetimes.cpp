#include "program/tape/name_lifetimes.h"

#include <algorithm>

namespace shardplan::tape {
namespace {

struct Uses {
  std::vector<std::int32_t> last, made;  ///< index of an operation by value; -1: of none
};

Uses uses_of(const Graph& graph, TapeMode mode) {
  const auto& ops = graph.ops();
  Uses uses{std::vector<std::int32_t>(graph.values().size(), -1),
            std::vector<std::int32_t>(graph.values().size(), -1)};
  const auto use = [&](ValueId value, std::size_t i) {
    if (value != kNone) uses.last[static_cast<std::size_t>(value)] = static_cast<std::int32_t>(i);
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    uses.made[static_cast<std::size_t>(ops[i].out)] = static_cast<std::int32_t>(i);
    for (const ValueId in : ops[i].in) use(in, i);
    use(ops[i].scores_bias, i);
    use(ops[i].kept, i);
  }
  const bool saves = mode == TapeMode::keep || mode == TapeMode::redo;
  for (const Hold& hold : graph.holds()) {
    if (hold.saved && !saves) continue;
    auto& at = uses.last[static_cast<std::size_t>(hold.value)];
    at = std::max(at, uses.made[static_cast<std::size_t>(hold.until)]);
  }
  for (const ValueId value : graph.named()) use(value, ops.size() - 1);
  return uses;
}

}  // namespace

std::vector<NameEnd> name_ends(const Graph& graph, TapeMode mode) {
  const Uses uses = uses_of(graph, mode);
  std::vector<bool> outlive(graph.values().size());
  for (const auto* named : {&graph.named_in_model(), &graph.named_in_output(), &graph.beside()})
    for (const ValueId value : *named) outlive[static_cast<std::size_t>(value)] = true;
  std::vector<NameEnd> ends;
  ends.reserve(graph.values().size());
  if (graph.lets_input_go() && (mode == TapeMode::keep || mode == TapeMode::infer))
    for (const Input& in : graph.inputs())
      if (in.kind == InputKind::chained)
        ends.push_back({std::max(uses.last[static_cast<std::size_t>(in.value)], 0), in.value});
  for (std::size_t v = 0; v < graph.values().size(); ++v) {
    const auto value = static_cast<ValueId>(v);
    if (uses.made[v] < 0 || value == graph.output()) continue;
    if (outlive[v]) continue;
    ends.push_back({std::max(uses.last[v], uses.made[v]), value});
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

}  // namespace shardplan::tape
