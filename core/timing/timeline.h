// Runs a step program against the clock: the host issues, the compute stream, the collectives'
// stream and the copies' stream work, each after what it depends on.
//
// A sequence of kernels acts on the clocks of host h and compute stream c as
//   c' = max(c + busy, h + chain),  h' = h + issue,
// with `chain` the longest path from the sequence's first issue to its last kernel's end. Sequences
// compose in closed form, so that a layer of hundreds of kernels costs a few operations. Where each
// launch waits for its kernel (CUDA_LAUNCH_BLOCKING), host and GPU take turns:
//   c' = h' = max(c, h) + issue + busy.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "program/program.h"
#include "timing/timed_kernel.h"

namespace shardplan {

struct StepTimes {
  double step = 0;           ///< until everything is done
  double compute = 0;        ///< kernels of the forward and backward pass
  double optimizer = 0;      ///< kernels and host work of the step phase
  double communication = 0;  ///< hidden and exposed
  double exposed_communication = 0;
  double exposed_copies = 0;
  double bubble = 0;                        ///< waiting for other pipeline stages
  double idle = 0;                          ///< the GPU waits for the host to issue
  double ideal = 0;                         ///< at datasheet rates, everything hidden
  std::array<double, 3> ideal_of_phases{};  ///< of its kernels: forward, backward, step
  double flops = 0;                         ///< that kernels compute, recomputation included
};

/// One thing that ran. Seconds since the step began.
struct Span {
  Stream stream = Stream::compute;
  bool host = false;  ///< on the host instead
  double start = 0, seconds = 0;
  std::size_t event = 0;           ///< index in Program::events
  const Kernel* kernel = nullptr;  ///< of a compute event: which
};

/// An allocation or, negative, a free, at the place of the compute stream that it stands before.
struct MemoryChange {
  double at = 0;
  Category category = Category::other;
  std::int64_t bytes = 0;
};

/// From the beginning of a phase to that of the next.
struct PhaseSpan {
  Phase phase = Phase::forward;
  double start = 0, end = 0;
};

/// Everything that happens in a step, in order of issue. Points into the program.
struct Trace {
  std::vector<Span> spans;
  std::vector<MemoryChange> memory;
  std::vector<PhaseSpan> phases;
  double bubble_start = 0;  ///< where the rank begins to wait for other pipeline stages
  std::array<double, kPhaseCount> phase_starts{};  ///< by Phase: of its last micro-batch
};

/// `plan`: the one that the program was lowered from. `trace`: if given, is filled. `timed`: the
/// first of the program's kernels, where they are timed already.
StepTimes simulate_time(const Program& program, const Plan& plan, const TimeRates& rates,
                        Trace* trace = nullptr, std::span<const TimedKernel> timed = {});

}  // namespace shardplan
