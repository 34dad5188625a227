// The ranks of a plan that may need more than others, each with its program and live bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "lowering/rank_model.h"
#include "plan/plan.h"
#include "program/program.h"
#include "simulator/memory.h"

namespace shardplan {

struct RankPrograms {
  std::vector<Program> programs;
  std::vector<MemoryProfile> memory;  ///< of each program
  std::size_t worst = 0;              ///< the one whose peak is highest
  std::size_t timed = 0;  ///< the one that computes most, which the others of a pipeline wait for
  bool differ = false;    ///< in their peaks

  std::vector<const Program*> all() const;
};

/// `share`: one rank's model, as the plan divides it. Throws InputError for a plan that cannot be
/// lowered.
RankPrograms lower_ranks(const RankModel& share, const Plan& plan);

/// In the place of program number `i`: of the ranks that hold the same, the one whose allocator
/// caches most (FrameworkTraits::cut_otherwise), under that program's number.
void take_most_cached(RankPrograms& ranks, std::size_t i, const RankModel& share, const Plan& plan);

}  // namespace shardplan
