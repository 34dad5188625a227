// What every plan with the same activations and the same computation needs at least, however it
// is sharded, bucketed or offloaded: for searches that rule many plans out at once.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/passes.h"
#include "plan/plan.h"
#include "program/program.h"
#include "timing/rates.h"

namespace shardplan {

/// One pass over a segment.
struct LeastPass {
  /// Kernels up to an exchange with other ranks, the exchange itself, or the wait for its end.
  struct Piece {
    enum class Kind : std::uint8_t { kernels, exchange, wait };
    Kind kind = Kind::kernels;
    double seconds = 0;  ///< kernels
    Event exchange;
  };
  std::vector<Piece> pieces;
  double flops = 0;
  std::int64_t kept = 0;  ///< bytes that it leaves beyond what it found
  std::int64_t rise = 0;  ///< and has in between, at most
};

struct LeastSegment {
  LeastPass forward, backward;
  bool has_others = false;  ///< layers with other tapes than the rest (SegmentRun::others)
  LeastPass others_forward, others_backward;
  bool has_first = false;  ///< its first iteration is another (SegmentRun::first)
  LeastPass first_forward, first_backward;
};

/// What all plans with these passes need, computed once for them.
struct LeastPasses {
  std::vector<LeastSegment> segments;
  /// Peak of one micro-batch through the whole network with no framework around it.
  std::int64_t activation_bytes = 0;
};
LeastPasses least_passes(const Passes& passes);

/// Of one rank. Frameworks add to it and to what they keep between steps.
struct LeastWork {
  /// Peak of what the passes themselves allocate: no gradients, gathers or buckets.
  std::int64_t activation_bytes = 0;
  /// Of all micro-batches of a step: computation, the exchanges that it waits for, the bubble.
  double seconds = 0;  ///< 0: unknown
  double flops = 0;
};

/// Of a rank of each pipeline stage that may be the worst, in the order of distinct_ranks(); of a
/// plan without stages one for all ranks. `least` is that of `passes`, which are those of `plan`.
std::vector<LeastWork> least_work(const Plan& plan, const Passes& passes, const LeastPasses& least,
                                  const TimeRates& rates);

}  // namespace shardplan
