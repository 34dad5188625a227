#include "engine/pipeline/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardplan::validator {
namespace {

using Kind = Pass::Kind;

/// The k-th pass of a kind. Micro-batches go through one chunk after the other, as many at a time
/// as there are stages; the last chunk comes back first.
Pass pass_of(const Pipeline& p, Kind kind, std::int64_t k) {
  if (p.chunks == 1) return {kind, 0, k};
  const std::int64_t round = std::int64_t{p.stages} * p.chunks;
  const int chunk = static_cast<int>(k % round / p.stages);
  return {kind, kind == Kind::forward ? chunk : p.chunks - 1 - chunk,
          k / round * p.stages + k % p.stages};
}

/// Forward passes before the first backward one.
std::int64_t warmup_of(const Pipeline& p, int stage, std::int64_t passes) {
  if (p.order == PipelineSchedule::gpipe) return passes;
  const int after = p.stages - 1 - stage;
  const int wanted = p.chunks == 1 ? after : 2 * after + (p.chunks - 1) * p.stages;
  return std::min<std::int64_t>(wanted, passes);
}

/// The passes of each turn. A stage with one chunk exchanges between any two passes, so that
/// nothing waits for what is not needed yet. With several, what comes back from the last stage to
/// the first would then be waited for in a circle: a forward and a backward pass are one turn.
std::vector<std::vector<Pass>> passes_of(const Pipeline& p, int stage, std::int64_t micro_batches) {
  const std::int64_t count = micro_batches * p.chunks;
  const std::int64_t warmup = warmup_of(p, stage, count);
  std::vector<std::vector<Pass>> turns;
  for (std::int64_t k = 0; k < warmup; ++k) turns.push_back({pass_of(p, Kind::forward, k)});
  for (std::int64_t k = warmup; k < count; ++k) {
    turns.push_back({pass_of(p, Kind::forward, k)});
    if (p.chunks == 1) turns.emplace_back();
    turns.back().push_back(pass_of(p, Kind::backward, k - warmup));
  }
  for (std::int64_t k = count - warmup; k < count; ++k)
    turns.push_back({pass_of(p, Kind::backward, k)});
  return turns;
}

/// Gives each micro-batch in a chunk the lowest slot that is free.
class Slots {
 public:
  int take(const Pass& pass) {
    auto at = std::find(taken_.begin(), taken_.end(), false);
    if (at == taken_.end()) at = taken_.insert(at, false);
    *at = true;
    return of_[{pass.chunk, pass.micro_batch}] = static_cast<int>(at - taken_.begin());
  }
  int leave(const Pass& pass) {
    const int slot = of_.at({pass.chunk, pass.micro_batch});
    taken_[static_cast<std::size_t>(slot)] = false;
    return slot;
  }

 private:
  std::vector<bool> taken_;
  std::map<std::pair<int, std::int64_t>, int> of_;
};

/// The stage from which a pass has what it reads, or to which it gives what it makes.
int stage_before(const Pipeline& p, int stage) {
  return (stage + p.stages - 1) % p.stages;
}
int stage_after(const Pipeline& p, int stage) {
  return (stage + 1) % p.stages;
}

}  // namespace

std::vector<Turn> schedule_of(const Pipeline& p, int stage, std::int64_t micro_batches) {
  std::vector<Turn> turns;
  std::vector<Message> made;  // by the turn before
  Slots slots;
  for (std::vector<Pass>& passes : passes_of(p, stage, micro_batches)) {
    Turn turn{std::exchange(made, {}), {}, {}};
    for (Pass& pass : passes) {
      const bool forward = pass.kind == Kind::forward;
      pass.slot = forward ? slots.take(pass) : slots.leave(pass);
      const bool begins = p.begins(stage, pass.chunk), ends = p.ends(stage, pass.chunk);
      const int before = stage_before(p, stage), after = stage_after(p, stage);
      if (!(forward ? begins : ends)) turn.in.push_back({forward ? before : after, pass});
      if (!(forward ? ends : begins)) made.push_back({forward ? after : before, pass});
    }
    turn.passes = std::move(passes);
    turns.push_back(std::move(turn));
  }
  if (!made.empty()) turns.push_back({std::move(made), {}, {}});
  return turns;
}

int slots_of(const std::vector<Turn>& turns) {
  int slots = 0;
  for (const Turn& turn : turns)
    for (const Pass& pass : turn.passes) slots = std::max(slots, pass.slot + 1);
  return slots;
}

}  // namespace shardplan::validator
