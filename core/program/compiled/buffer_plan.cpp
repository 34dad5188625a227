#include "program/compiled/buffer_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked.h"

namespace shardplan::compiled {
namespace {

/// An operator other than a product makes its results itself: it is handed no buffers
/// (torch/_inductor/ir.py, FallbackKernel and MultiOutput.should_allocate).
bool makes_own(const Node& made) {
  return made.kind == NodeKind::attention || made.kind == NodeKind::kernel;
}

class Planner {
 public:
  explicit Planner(const PlannedPass& planned)
      : p_(planned), stored_(planned.stored), levels_(levels()) {
    plan_.takes.assign(p_.graph.nodes.size(), {});
    plan_.waits.assign(p_.graph.nodes.size(), false);
    peak_ = std::max(p_.room, *std::max_element(levels_.begin(), levels_.end()));
  }

  /// Of one pass, or of one between two of the same.
  BufferPlan take() {
    const std::size_t copies = p_.again ? 3 : 1;
    planned_copy_ = copies / 2;
    for (std::size_t copy = 0; copy < copies; ++copy) {
      stored_ = p_.stored;
      for (std::size_t u = 0; u < p_.units.size(); ++u) run(copy, u);
    }
    return std::move(plan_);
  }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  struct Freed {
    NodeId id = kNone;
    std::size_t copy = 0, step = 0;
  };
  using Key = std::pair<std::int64_t, DType>;

  std::int64_t bytes_of(NodeId id) const {
    return checked_mul(p_.graph.at(id).elements, size_of(p_.graph.at(id).type));
  }
  std::int64_t inner_bytes(const Unit& unit) const;
  std::vector<std::int64_t> levels() const;
  std::vector<NodeId> dying(std::size_t u) const;
  void run(std::size_t copy, std::size_t u);
  void allocate(NodeId id, std::size_t copy, std::size_t step);
  bool may_take(const Freed& freed, std::size_t step, std::int64_t bytes) const;

  const PlannedPass& p_;
  std::vector<bool> stored_;
  std::vector<std::int64_t> levels_;  ///< by unit, of each copy: what Inductor expects there
  std::int64_t peak_ = 0;
  std::size_t planned_copy_ = 0;
  std::map<Key, std::vector<Freed>> pool_;
  BufferPlan plan_;
};

/// What stays inside of a kernel: the scheduler has a buffer for each result until it is written.
std::int64_t Planner::inner_bytes(const Unit& unit) const {
  std::int64_t bytes = 0;
  for (const Made& made : unit.nodes)
    if (!contains(unit.writes, made.id) && p_.graph.at(made.id).gradient_of == kNone)
      bytes = checked_add(bytes, bytes_of(made.id));
  return bytes;
}

/// What is there while each unit runs, beyond what the pass begins with: nothing is written over
/// another tensor, and no buffer waits (torch/_inductor/memory.py, estimate_peak_memory).
std::vector<std::int64_t> Planner::levels() const {
  std::vector<std::int64_t> levels;
  std::vector<bool> stored = p_.stored;
  std::int64_t live = 0;
  for (std::size_t u = 0; u < p_.units.size(); ++u) {
    for (const NodeId id : p_.units[u].writes) {
      live = checked_add(live, bytes_of(id));
      stored[at(id)] = p_.graph.at(id).gradient_of == kNone;
    }
    levels.push_back(checked_add(live, inner_bytes(p_.units[u])));
    for (const NodeId id : dying(u))
      if (stored[at(id)]) {
        live -= bytes_of(id);
        stored[at(id)] = false;
      }
  }
  const std::size_t once = levels.size();
  for (std::size_t copy = 1; p_.again && copy < 3; ++copy)
    for (std::size_t u = 0; u < once; ++u) levels.push_back(levels[u]);
  return levels;
}

std::vector<NodeId> Planner::dying(std::size_t u) const {
  std::vector<NodeId> dying;
  for (const auto* used : {&p_.units[u].reads, &p_.units[u].writes})
    for (const NodeId id : *used)
      if (p_.last[at(id)] == u && !p_.pass.wanted[at(id)]) dying.push_back(id);
  return dying;
}

void Planner::run(std::size_t copy, std::size_t u) {
  const Unit& unit = p_.units[u];
  const std::size_t step = copy * p_.units.size() + u;
  std::vector<NodeId> gone;
  for (const NodeId id : dying(u))
    if (stored_[at(id)]) gone.push_back(id);
  std::vector<bool> placed(unit.writes.size(), false);
  for (const Made& made : unit.nodes) {
    const auto written = std::find(unit.writes.begin(), unit.writes.end(), made.id);
    const NodeId over = written == unit.writes.end() ? kNone : p_.over(unit, made, gone);
    if (over == kNone) continue;
    std::erase(gone, over);
    stored_[at(over)] = false;
    placed[static_cast<std::size_t>(written - unit.writes.begin())] = true;
  }
  for (std::size_t w = 0; w < unit.writes.size(); ++w) {
    const NodeId id = unit.writes[w];
    const Node& made = p_.graph.at(id);
    if (made.gradient_of != kNone || made.elements == 0) continue;
    stored_[at(id)] = true;
    // What is handed on has a name of its own.
    if (!placed[w] && !makes_own(made) && !p_.pass.wanted[at(id)]) allocate(id, copy, step);
    if (p_.last[at(id)] == u && !p_.pass.wanted[at(id)] && !contains(gone, id)) gone.push_back(id);
  }
  for (const NodeId id : gone) {
    if (!stored_[at(id)]) continue;
    stored_[at(id)] = false;
    if (p_.stored[at(id)]) continue;  // given: its maker's
    pool_[{bytes_of(id), p_.graph.at(id).type}].push_back({id, copy, step});
  }
}

/// The one that was left last, where that does not raise the peak.
void Planner::allocate(NodeId id, std::size_t copy, std::size_t step) {
  std::vector<Freed>& pool = pool_[{bytes_of(id), p_.graph.at(id).type}];
  if (pool.empty() || !may_take(pool.back(), step, bytes_of(id))) return;
  const Freed freed = pool.back();
  pool.pop_back();
  for (std::size_t s = freed.step + 1; s < step; ++s) levels_[s] += bytes_of(id);
  if (freed.copy == planned_copy_) plan_.waits[at(freed.id)] = true;
  if (copy != planned_copy_) return;
  plan_.takes[at(id)] = {freed.id, freed.copy != copy};
  if (freed.copy != copy) plan_.carried.push_back(plan_.takes[at(id)]);
}

/// torch/_inductor/codegen/wrapper.py, AllocateLine.should_reuse_buffer.
bool Planner::may_take(const Freed& freed, std::size_t step, std::int64_t bytes) const {
  std::int64_t most = 0;
  for (std::size_t s = freed.step + 1; s < step; ++s) most = std::max(most, levels_[s]);
  return freed.step + 1 == step || checked_add(most, bytes) <= peak_;
}

}  // namespace

BufferPlan plan_buffers(const PlannedPass& planned) {
  return Planner(planned).take();
}

}  // namespace shardplan::compiled
