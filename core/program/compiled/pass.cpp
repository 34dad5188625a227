// The units of a pass in their order, and how long what they read is held.
#include "program/compiled/compiled_run.h"

#include <algorithm>
#include <map>

namespace shardplan::compiled {

void CompiledRun::begin_pass() {
  open_part_ = kNone;
  pass_ = {{}, flags(), flags(), follows_places(), follows_places() && plans_buffers()};
  for (NodeId id = 0; id < trace_.graph.end(); ++id)
    pass_.there[at(id)] = node(id).kind == NodeKind::input || node(id).kind == NodeKind::chained;
}

/// What a graph is called with is held by its caller until it returns, but for what is kept for its
/// backward pass: by unit, what goes at its end. `last`: by node, the last unit that uses it.
std::vector<std::vector<NodeId>> CompiledRun::hold_arguments(const std::vector<Unit>& units,
                                                             std::vector<std::size_t>& last) {
  std::vector<std::vector<NodeId>> held(units.size());
  if (options_.graph_parts == nullptr) return held;
  std::map<std::int32_t, std::size_t> ends;  // by part, its last unit
  for (std::size_t u = 0; u < units.size(); ++u) ends[units[u].part] = u;
  for (const Unit& unit : units)
    for (const NodeId id : unit.reads) {
      if (is_eager_kernel(unit)) continue;
      const std::size_t end = ends.at(unit.part);
      const bool handed = options_.graph_breaks && id == trace_.tangent;
      const bool own = node(id).part == unit.part || pass_.there[at(id)];
      if ((own && !handed) || last[at(id)] >= end) continue;
      last[at(id)] = end;
      held[end].push_back(id);
    }
  return held;
}

/// A graph is one node of autograd: parameters get their gradients when all of it has run.
void CompiledRun::return_gradients() {
  for (const TapeEvent& event : returned_) writer_.emit(event);
  returned_.clear();
}

/// Beside what a block computes, what it makes for the next one.
std::vector<Unit> CompiledRun::with_next_block(std::vector<Unit> units) {
  if (options_.blocks_in_row == 0 || !plans_buffers() || !in_backward_) return units;
  const MadeAhead ahead = make_ahead(trace_.graph, pass_, units);
  if (ahead.nodes.empty()) return units;
  const std::size_t nodes = trace_.graph.nodes.size();
  storage_.resize(nodes, kExternal);
  for (auto* flags : {&kept_, &pass_.there, &pass_.wanted}) flags->resize(nodes, false);
  const auto own = std::find(pass_.order.begin(), pass_.order.end(), ahead.after);
  pass_.order.insert(own + 1, ahead.nodes.begin(), ahead.nodes.end());
  units = units_of(trace_.graph, pass_);
  for (const NodeId id : ahead.nodes)  // until the next block
    if (!traits_of(node(id).kind).call) units.back().reads.push_back(id);
  return units;
}

/// Computes what is wanted and not there.
void CompiledRun::run_pass() {
  pass_.order = order_of(trace_.graph, pass_);
  const std::vector<Unit> units = with_next_block(units_of(trace_.graph, pass_));
  constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  std::vector<std::size_t> last(trace_.graph.nodes.size(), kNever);
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const NodeId id : units[u].writes) last[at(id)] = u;
    for (const NodeId id : units[u].reads) last[at(id)] = u;
  }
  std::vector<bool> stored;
  for (const StorageId id : storage_) stored.push_back(id != kExternal);
  working_set_ = working_set(trace_.graph, pass_, units, last, std::move(stored));
  const std::vector<std::vector<NodeId>> arguments = hold_arguments(units, last);
  plan(units, last);
  bool again = mode_ == TapeMode::redo;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Unit& unit = units[u];
    if (again && node(unit.writes.front()).backward) {
      writer_.begin_backward();
      again = false;
    }
    std::vector<NodeId> dying;
    const auto die = [&](NodeId id) {
      if (last[at(id)] == u && !pass_.wanted[at(id)]) dying.push_back(id);
    };
    for (const NodeId id : unit.reads) die(id);
    for (const NodeId id : unit.writes) die(id);
    for (const NodeId id : arguments[u])
      if (std::find(dying.begin(), dying.end(), id) == dying.end()) die(id);
    run_unit(unit, std::move(dying));
    if (u + 1 == units.size() || units[u + 1].part != unit.part) return_gradients();
  }
  hooks_.leave();
  // What was there and is neither read nor wanted.
  for (NodeId id = 0; id < trace_.graph.end(); ++id)
    if (pass_.there[at(id)] && last[at(id)] == kNever && !pass_.wanted[at(id)]) drop(id);
  writer_.flush();
}

}  // namespace shardplan::compiled
