#include "estimate/rank_programs.h"

#include <algorithm>
#include <utility>

#include "estimate/ranks.h"
#include "lowering/lower.h"

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

Program worst_program(const Model& model, const Plan& plan) {
  RankPrograms ranks = lower_ranks(RankModel(model, plan), plan);
  return std::move(ranks.programs[ranks.worst]);
}

}  // namespace shardplan
