#include "estimate/rank_programs.h"

#include <algorithm>
#include <utility>

#include "estimate/ranks.h"
#include "frameworks/registry.h"
#include "lowering/lower.h"
#include "simulator/reserved.h"

namespace shardplan {

std::vector<const Program*> RankPrograms::all() const {
  std::vector<const Program*> all;
  for (const Program& program : programs) all.push_back(&program);
  return all;
}

RankPrograms lower_ranks(const RankModel& share, const Plan& plan) {
  RankPrograms ranks;
  double most = 0;
  for (const std::int64_t rank : distinct_ranks(share.model(), plan)) {
    const std::size_t at = ranks.programs.size();
    const Program& program =
        ranks.programs.emplace_back(lower(share.model(), plan, share.run(), rank));
    const MemoryProfile& memory = ranks.memory.emplace_back(simulate_memory(program));
    const double flops = plan.parallel.pipeline > 1 ? hardware_flops(program) : 0;
    ranks.differ = ranks.differ || memory.peak != ranks.memory[ranks.worst].peak;
    if (at == 0 || memory.peak > ranks.memory[ranks.worst].peak) ranks.worst = at;
    if (at == 0 || flops > most) ranks.timed = at;
    most = std::max(most, flops);
  }
  return ranks;
}

void take_most_cached(RankPrograms& ranks, std::size_t i, const RankModel& share,
                      const Plan& plan) {
  const std::int64_t first = ranks.programs[i].rank;
  const std::vector<std::int64_t> others = traits_of(plan).cut_otherwise(plan, first);
  if (others.empty()) return;
  std::int64_t most = simulate_reserved(ranks.programs[i], {}).reserved;
  for (const std::int64_t rank : others) {
    Program other = lower(share.model(), plan, share.run(), rank);
    const std::int64_t reserved = simulate_reserved(other, {}).reserved;
    if (reserved <= most) continue;
    most = reserved;
    other.rank = first;
    ranks.memory[i] = simulate_memory(other);
    ranks.programs[i] = std::move(other);
  }
}

Program worst_program(const Model& model, const Plan& plan) {
  RankPrograms ranks = lower_ranks(RankModel(model, plan), plan);
  return std::move(ranks.programs[ranks.worst]);
}

}  // namespace shardplan
