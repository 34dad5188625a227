#include "program/compiled/units.h"

#include <algorithm>

#include "base/checked.h"
#include "program/compiled/inlined.h"

namespace shardplan::compiled {
namespace {

class UnitBuilder {
 public:
  UnitBuilder(const JointGraph& graph, const Pass& pass)
      : graph_(graph),
        pass_(pass),
        computed_(graph.nodes.size()),
        stored_(graph.nodes.size()),
        made_in_(graph.nodes.size(), 0),
        met_in_(graph.nodes.size()) {
    for (const NodeId id : pass.order) computed_[at(id)] = true;
    for (const NodeId id : pass.order) {
      const Node& node = graph.at(id);
      stored_[at(id)] = stored_[at(id)] || is_stored(id);
      const bool whole = is_call(node);
      for (std::size_t k = 0; k < node.inputs; ++k)
        if (whole || graph.at(node.in[k]).part != node.part) stored_[at(node.in[k])] = true;
    }
    const std::vector<bool> too_long = too_long_to_inline(graph, pass.order, stored_);
    for (const NodeId id : pass.order) stored_[at(id)] = stored_[at(id)] || too_long[at(id)];
  }

  std::vector<Unit> take() {
    for (const NodeId id : pass_.order)
      if (stored_[at(id)]) add(id);
    drop_inner();
    return std::move(units_);
  }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  bool is_stored(NodeId id) const {
    const Node& node = graph_.at(id);
    return pass_.wanted[at(id)] || node.realized || node.gradient_of != kNone ||
           (node.kind != NodeKind::pointwise && node.kind != NodeKind::lookup);
  }
  /// Also what autograd scatters itself.
  static bool is_call(const Node& node) {
    return traits_of(node.kind).call || (node.kind == NodeKind::scatter && node.realized);
  }
  void collect_reads(NodeId id, std::vector<NodeId>& reads) const;
  std::int64_t span_of(NodeId id) const;
  void add(NodeId id);
  std::size_t home_of(const Unit& unit) const;
  NodeId first_result(const Node& node) const;
  void meet(NodeId id, std::size_t unit);
  bool may_draw_in(const Unit& early, const Unit& home) const;
  void draw_in(std::size_t from, std::size_t into);
  void draw_in_readers(NodeId read, std::size_t into);
  bool postpone_readers(std::size_t from, std::size_t into);
  void move_names(std::size_t from, std::size_t into);
  void drop_inner();
  bool stands_alone(const Unit& unit) const {
    return !unit.writes.empty() && graph_.at(unit.writes.front()).alone;
  }

  const JointGraph& graph_;
  const Pass& pass_;
  std::vector<bool> computed_, stored_;
  std::vector<Unit> units_;
  std::vector<std::size_t> made_in_;              ///< by node: its unit
  std::vector<std::vector<std::size_t>> met_in_;  ///< by node: units that read or write it
};

/// The tensors in memory that `id` is computed from.
void UnitBuilder::collect_reads(NodeId id, std::vector<NodeId>& reads) const {
  const Node& node = graph_.at(id);
  for (std::size_t k = 0; k < node.inputs; ++k) {
    const NodeId in = node.in[k];
    const bool inlined = computed_[at(in)] && !stored_[at(in)];
    if (inlined) {
      collect_reads(in, reads);
    } else if (std::find(reads.begin(), reads.end(), in) == reads.end()) {
      reads.push_back(in);
    }
  }
}

std::int64_t UnitBuilder::span_of(NodeId id) const {
  const Node& node = graph_.at(id);
  // A scatter goes over what it adds.
  std::int64_t span = node.kind == NodeKind::scatter ? 0 : node.elements;
  if (node.kind == NodeKind::reduction || node.kind == NodeKind::scatter)
    for (std::size_t k = 0; k < node.inputs; ++k)
      span = std::max(span, graph_.at(node.in[k]).elements);
  return span;
}

/// What reads it waits for the whole kernel.
bool takes_all(const Node& node) {
  return node.across || node.turned || node.kind == NodeKind::scatter;
}

/// Of two that have a tensor in common. Statistics of rows are part of the kernel that goes over
/// the rows.
bool fuses_with(const Unit& unit, const Unit& other) {
  return !other.call && other.part == unit.part &&
         (other.span == unit.span || (unit.span < other.span && other.reduces));
}

/// Of a further result of a call of attention: its first one, which is made together with it.
NodeId UnitBuilder::first_result(const Node& node) const {
  if (!pass_.together || node.kind != NodeKind::attention || node.inputs != 1) return kNone;
  const Node& first = graph_.at(node.in[0]);
  const bool one_call =
      first.kind == NodeKind::attention && first.op == node.op && first.backward == node.backward;
  return one_call && computed_[at(node.in[0])] ? node.in[0] : kNone;
}

/// Units come in any order, each once or more.
void UnitBuilder::meet(NodeId id, std::size_t unit) {
  std::vector<std::size_t>& met = met_in_[at(id)];
  if (met.empty() || met.back() != unit) met.push_back(unit);
}

void UnitBuilder::add(NodeId id) {
  const Node& node = graph_.at(id);
  Unit unit;
  unit.call = is_call(node);
  unit.reduces = node.kind == NodeKind::reduction;
  unit.part = node.part;
  unit.span = span_of(id);
  unit.workspace = node.workspace;
  unit.writes.push_back(id);
  collect_reads(id, unit.reads);
  unit.nodes.push_back({id, unit.reads});
  const NodeId first = first_result(node);
  const std::size_t into = first != kNone            ? made_in_[at(first)]
                           : unit.call || node.alone ? units_.size()
                                                     : home_of(unit);
  made_in_[at(id)] = into;
  meet(id, into);
  for (const NodeId read : unit.reads) meet(read, into);
  const std::vector<NodeId> reads = unit.reads;
  if (into == units_.size()) {
    units_.push_back(std::move(unit));
  } else {
    Unit& home = units_[into];
    for (const NodeId read : reads)
      if (!contains(home.reads, read) && !contains(home.writes, read)) home.reads.push_back(read);
    home.writes.push_back(id);
    home.nodes.push_back(std::move(unit.nodes.front()));
    home.reduces = home.reduces || unit.reduces;
    home.workspace += unit.workspace;
  }
  if (units_[into].call) return;
  for (const NodeId read : reads)
    if (computed_[at(read)]) draw_in(made_in_[at(read)], into);
  for (const NodeId read : reads) draw_in_readers(read, into);
}

/// So is what goes over the same tensor, and is needed later alone: a gate's product that is
/// computed again for the gradient of a weight.
void UnitBuilder::draw_in_readers(NodeId read, std::size_t into) {
  if (graph_.at(read).elements < units_[into].span) return;
  const std::vector<std::size_t> met = met_in_[at(read)];
  for (const std::size_t u : met)
    if (contains(units_[u].reads, read)) draw_in(u, into);
}

bool UnitBuilder::may_draw_in(const Unit& early, const Unit& home) const {
  if (early.call || early.reduces || early.part != home.part || early.span != home.span)
    return false;
  return !stands_alone(early) && !stands_alone(home) &&
         std::ranges::none_of(early.writes, [&](NodeId id) { return takes_all(graph_.at(id)); });
}

/// What goes element by element is part of the last kernel that reads it, where nothing needs it
/// before: the kernels between do not read it.
void UnitBuilder::draw_in(std::size_t from, std::size_t into) {
  if (!may_draw_in(units_[from], units_[into]) || from >= into) return;
  if (!postpone_readers(from, into)) return;
  Unit& early = units_[from];
  Unit& home = units_[into];
  for (const NodeId made : early.writes) std::erase(home.reads, made);
  for (const NodeId read : early.reads)
    if (!contains(home.reads, read)) home.reads.push_back(read);
  home.writes.insert(home.writes.begin(), early.writes.begin(), early.writes.end());
  home.nodes.insert(home.nodes.begin(), early.nodes.begin(), early.nodes.end());
  home.workspace += early.workspace;
  move_names(from, into);
  early = Unit{};
}

/// What was in one unit is in another one.
void UnitBuilder::move_names(std::size_t from, std::size_t into) {
  for (const auto* met : {&units_[from].reads, &units_[from].writes})
    for (const NodeId id : *met) {
      std::erase(met_in_[at(id)], from);
      meet(id, into);
    }
  for (const NodeId made : units_[from].writes) made_in_[at(made)] = into;
}

/// Whether nothing between the two needs what the first one makes before the other one is there.
/// What does and is not needed there comes behind it, with what needs that: an adapter's product of
/// an activation, which waits for the gradient of the next factor
/// (torch/_inductor/scheduler.py, will_fusion_create_cycle, topological_sort_schedule).
bool UnitBuilder::postpone_readers(std::size_t from, std::size_t into) {
  std::vector<std::size_t> later;
  const auto needs = [&](const Unit& unit, std::size_t made) {
    return std::ranges::any_of(units_[made].writes,
                               [&](NodeId id) { return contains(unit.reads, id); });
  };
  const auto waits = [&](const Unit& unit) {
    return std::ranges::any_of(later, [&](std::size_t made) { return needs(unit, made); });
  };
  for (std::size_t u = from + 1; u < into; ++u)
    if (needs(units_[u], from) || waits(units_[u])) later.push_back(u);
  if (later.empty()) return true;
  if (!pass_.postpones || into + 1 != units_.size() || waits(units_[into])) return false;
  for (const std::size_t u : later) {
    units_.emplace_back();
    move_names(u, units_.size() - 1);
    std::swap(units_[u], units_.back());
  }
  return true;
}

/// The unit that a new one is fused with, the latest that goes, or the end: what it reads is there
/// by then. Of reductions that are no rows' one that reduces comes before others
/// (torch/_inductor/choices.py, score_fusion: the type first), so that what follows from all of
/// them is one kernel too.
std::size_t UnitBuilder::home_of(const Unit& unit) const {
  std::size_t first = 0;
  for (const NodeId read : unit.reads)
    if (computed_[at(read)])
      first = std::max(first, made_in_[at(read)] + (takes_all(graph_.at(read)) ? 1U : 0U));
  const bool across = graph_.at(unit.writes.front()).across;
  const auto alike = [&](std::size_t u) { return across && units_[u].reduces; };
  std::size_t home = units_.size();
  for (const NodeId read : unit.reads)
    for (const std::size_t u : met_in_[at(read)]) {
      if (u < first || !fuses_with(unit, units_[u]) || stands_alone(units_[u])) continue;
      const bool none = home == units_.size();
      if (none || (alike(u) == alike(home) ? u > home : alike(u))) home = u;
    }
  return home;
}

/// What only its own kernel uses is not written.
void UnitBuilder::drop_inner() {
  std::vector<bool> read(graph_.nodes.size(), false);
  for (const Unit& unit : units_)
    for (const NodeId id : unit.reads) read[at(id)] = true;
  for (Unit& unit : units_)
    std::erase_if(unit.writes, [&](NodeId id) {
      const Node& node = graph_.at(id);
      return !unit.call && !read[at(id)] && !pass_.wanted[at(id)] && node.gradient_of == kNone &&
             !node.ahead;
    });
  std::erase_if(units_, [](const Unit& unit) { return unit.writes.empty(); });
}

}  // namespace

bool may_write_over(const Unit& unit, const Made& made, NodeId read) {
  if (!contains(made.reads, read)) return false;
  std::vector<NodeId> waits_for = made.reads;
  for (std::size_t k = 0; k < waits_for.size(); ++k)
    for (const Made& other : unit.nodes)
      if (other.id == waits_for[k])
        for (const NodeId id : other.reads)
          if (!contains(waits_for, id)) waits_for.push_back(id);
  return std::all_of(unit.nodes.begin(), unit.nodes.end(), [&](const Made& other) {
    return other.id == made.id || contains(waits_for, other.id) || !contains(other.reads, read);
  });
}

std::vector<NodeId> order_of(const JointGraph& graph, const Pass& pass) {
  std::vector<bool> needed(graph.nodes.size(), false);
  std::vector<NodeId> open, order;
  const auto need = [&](NodeId id) {
    const auto at = static_cast<std::size_t>(id);
    if (pass.there[at] || needed[at]) return;
    needed[at] = true;
    open.push_back(id);
  };
  for (NodeId id = 0; id < graph.end(); ++id)
    if (pass.wanted[static_cast<std::size_t>(id)]) need(id);
  while (!open.empty()) {
    const Node& made = graph.at(open.back());
    open.pop_back();
    for (std::size_t k = 0; k < made.inputs; ++k) need(made.in[k]);
  }
  for (NodeId id = 0; id < graph.end(); ++id)
    if (needed[static_cast<std::size_t>(id)]) order.push_back(id);
  return order;
}

std::vector<Unit> units_of(const JointGraph& graph, const Pass& pass) {
  return UnitBuilder(graph, pass).take();
}

std::int64_t working_set(const JointGraph& graph, const Pass& pass, const std::vector<Unit>& units,
                         const std::vector<std::size_t>& last, std::vector<bool> stored) {
  const auto at = [](NodeId id) { return static_cast<std::size_t>(id); };
  const auto bytes_of = [&](NodeId id) {
    return checked_mul(graph.at(id).elements, size_of(graph.at(id).type));
  };
  std::int64_t live = 0, peak = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const NodeId id : units[u].writes) {
      live = checked_add(live, bytes_of(id));
      stored[at(id)] = graph.at(id).gradient_of == kNone;
    }
    peak = std::max(peak, checked_add(live, units[u].workspace));
    for (const auto* used : {&units[u].reads, &units[u].writes})
      for (const NodeId id : *used) {
        if (!stored[at(id)] || last[at(id)] != u || pass.wanted[at(id)]) continue;
        stored[at(id)] = false;
        live -= bytes_of(id);
      }
  }
  return peak;
}

}  // namespace shardplan::compiled
