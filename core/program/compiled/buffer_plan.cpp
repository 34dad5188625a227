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
      : p_(planned), passes_(static_cast<std::size_t>(planned.passes)) {
    find_levels();
    const std::size_t nodes = p_.graph.nodes.size();
    plans_.resize(passes(), {std::vector<LeftBuffer>(nodes), std::vector<bool>(nodes, false), {}});
    peak_ = std::max(p_.room, *std::max_element(levels_.begin(), levels_.end()));
  }

  BufferPlan take() {
    for (std::size_t pass = 0; pass < passes(); ++pass) {
      stored_ = p_.stored;
      if (left_ == 0) live_ = 0;
      for (std::size_t u = 0; u < p_.units.size(); ++u) run(pass, u);
    }
    return std::move(plans_[nearest_to_all()]);
  }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  struct Freed {
    NodeId id = kNone;
    std::size_t pass = 0, step = 0;
  };
  using Key = std::pair<std::int64_t, DType>;

  std::size_t passes() const { return passes_; }
  std::int64_t bytes_of(NodeId id) const {
    return checked_mul(p_.graph.at(id).elements, size_of(p_.graph.at(id).type));
  }
  std::int64_t inner_bytes(const Unit& unit) const;
  void find_levels();
  std::vector<NodeId> dying(std::size_t u) const;
  void run(std::size_t pass, std::size_t u);
  void allocate(NodeId id, std::size_t pass, std::size_t step);
  bool may_take(const Freed& freed, std::size_t step, std::int64_t bytes) const;
  std::int64_t peak_of(const BufferPlan& plan) const;
  std::size_t nearest_to_all() const;

  const PlannedPass& p_;
  std::size_t passes_;     ///< that are planned
  std::int64_t left_ = 0;  ///< by each for the next one, beyond what it ends
  std::vector<bool> stored_;
  std::vector<std::int64_t> levels_;  ///< by step: what Inductor expects there
  std::vector<std::int64_t> filled_;  ///< by step: what is there, with what waits
  std::vector<std::int64_t> alone_;   ///< by unit of the first pass: without
  std::int64_t live_ = 0;             ///< the same, of what does not wait
  std::int64_t peak_ = 0;
  std::map<Key, std::vector<Freed>> pool_;
  std::vector<BufferPlan> plans_;  ///< by pass
};

/// What stays inside of a kernel: the scheduler has a buffer for each result until it is written.
std::int64_t Planner::inner_bytes(const Unit& unit) const {
  std::int64_t bytes = 0;
  for (const Made& made : unit.nodes)
    if (!contains(unit.writes, made.id) && p_.graph.at(made.id).gradient_of == kNone)
      bytes = checked_add(bytes, bytes_of(made.id));
  return bytes;
}

/// What is there while each unit runs, beyond what the first pass begins with: nothing is written
/// over another tensor, and no buffer waits (torch/_inductor/memory.py, estimate_peak_memory).
void Planner::find_levels() {
  std::vector<bool> stored = p_.stored;
  std::int64_t live = 0;
  for (std::size_t u = 0; u < p_.units.size(); ++u) {
    for (const NodeId id : p_.units[u].writes) {
      live = checked_add(live, bytes_of(id));
      stored[at(id)] = p_.graph.at(id).gradient_of == kNone;
    }
    levels_.push_back(checked_add(live, inner_bytes(p_.units[u])));
    for (const NodeId id : dying(u))
      if (stored[at(id)]) {
        live -= bytes_of(id);
        stored[at(id)] = false;
      }
  }
  // Where each begins higher, what Inductor expects at the head and behind the blocks decides, and
  // is not followed: they are planned as if they began alike. Planned by that, StableLM's run was
  // 1.1 % too low.
  if (p_.in_row) left_ = std::min<std::int64_t>(live, 0);
  if (left_ == 0) passes_ = std::min<std::size_t>(passes_, kBetweenTwo);
  const std::size_t once = levels_.size();
  for (std::size_t step = once; step < passes() * once; ++step)
    levels_.push_back(checked_add(levels_[step - once], left_));
}

std::vector<NodeId> Planner::dying(std::size_t u) const {
  std::vector<NodeId> dying;
  for (const auto* used : {&p_.units[u].reads, &p_.units[u].writes})
    for (const NodeId id : *used)
      if (p_.last[at(id)] == u && !p_.pass.wanted[at(id)]) dying.push_back(id);
  return dying;
}

void Planner::run(std::size_t pass, std::size_t u) {
  const Unit& unit = p_.units[u];
  const std::size_t step = pass * p_.units.size() + u;
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
    if (!placed[w]) live_ = checked_add(live_, bytes_of(id));
    if (made.gradient_of != kNone || made.elements == 0) continue;
    stored_[at(id)] = true;
    // What is handed on has a name of its own.
    if (!placed[w] && !makes_own(made) && !p_.pass.wanted[at(id)]) allocate(id, pass, step);
    if (p_.last[at(id)] == u && !p_.pass.wanted[at(id)] && !contains(gone, id)) gone.push_back(id);
  }
  filled_.push_back(checked_add(live_, unit.workspace));
  if (pass == 0) alone_.push_back(filled_.back());
  for (const NodeId id : gone) {
    if (!stored_[at(id)]) continue;
    stored_[at(id)] = false;
    live_ -= bytes_of(id);
    if (p_.stored[at(id)]) continue;  // given: its maker's
    pool_[{bytes_of(id), p_.graph.at(id).type}].push_back({id, pass, step});
  }
}

/// The one that was left last, where that does not raise the peak.
void Planner::allocate(NodeId id, std::size_t pass, std::size_t step) {
  const std::int64_t bytes = bytes_of(id);
  std::vector<Freed>& pool = pool_[{bytes, p_.graph.at(id).type}];
  if (pool.empty() || !may_take(pool.back(), step, bytes)) return;
  const Freed freed = pool.back();
  pool.pop_back();
  for (std::size_t s = freed.step + 1; s < step; ++s) {
    levels_[s] = checked_add(levels_[s], bytes);
    filled_[s] = checked_add(filled_[s], bytes);
  }
  BufferPlan& plan = plans_[pass];
  plans_[freed.pass].waits[at(freed.id)] = true;
  plan.takes[at(id)] = {freed.id, pass - freed.pass};
  if (freed.pass != pass) plan.carried.push_back(plan.takes[at(id)]);
}

/// torch/_inductor/codegen/wrapper.py, AllocateLine.should_reuse_buffer.
bool Planner::may_take(const Freed& freed, std::size_t step, std::int64_t bytes) const {
  std::int64_t most = 0;
  for (std::size_t s = freed.step + 1; s < step; ++s) most = std::max(most, levels_[s]);
  return freed.step + 1 == step || checked_add(most, bytes) <= peak_;
}

/// The most that is there where all passes have this plan: in the first of them, as none leaves
/// more than it ends.
std::int64_t Planner::peak_of(const BufferPlan& plan) const {
  std::int64_t carried = 0;
  for (const LeftBuffer& found : plan.carried) carried = checked_add(carried, bytes_of(found.by));
  std::int64_t waiting = carried, most = checked_add(carried, left_);
  for (std::size_t u = 0; u < p_.units.size(); ++u) {
    for (const NodeId id : p_.units[u].writes)
      if (plan.takes[at(id)].by != kNone) waiting -= bytes_of(id);
    most = std::max(most, checked_add(alone_[u], waiting));
    for (const NodeId id : dying(u))
      if (plan.waits[at(id)]) waiting = checked_add(waiting, bytes_of(id));
  }
  return most;
}

/// Of passes whose plans are as near the one that others follow, and a later one, where more waits
/// from the start.
std::size_t Planner::nearest_to_all() const {
  const std::int64_t most = *std::max_element(filled_.begin(), filled_.end());
  std::size_t nearest = 0;
  std::int64_t nearest_peak = 0;
  for (std::size_t pass = 1; pass < passes(); ++pass) {
    const std::int64_t peak = peak_of(plans_[pass]);
    const bool nearer =
        peak >= most && nearest_peak >= most ? peak < nearest_peak : peak > nearest_peak;
    const bool as_near = peak == nearest_peak && pass + 1 < passes();
    if (nearest > 0 && !nearer && !as_near) continue;
    nearest = pass;
    nearest_peak = peak;
  }
  return nearest;
}

}  // namespace

BufferPlan plan_buffers(const PlannedPass& planned) {
  return Planner(planned).take();
}

}  // namespace shardplan::compiled
