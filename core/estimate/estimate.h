// The answer: what one step of a plan needs on the worst GPU, on the host, on NVMe and on the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimate/apart.h"
#include "estimate/calibration.h"
#include "estimate/device_memory.h"
#include "estimate/many_iterations.h"
#include "estimate/passes.h"
#include "estimate/serving.h"
#include "estimate/time.h"
#include "estimate/traffic.h"
#include "estimate/typical_step.h"
#include "estimate/verdict.h"
#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"
#include "simulator/memory.h"
#include "timing/collective_time.h"

namespace shardplan {

struct Estimate {
  Verdict verdict;
  std::int64_t parameters = 0, trainable_parameters = 0, tensors = 0;
  std::int64_t capacity_bytes = 0, usable_bytes = 0;
  Range allocated, reserved, device;
  /// Reserved where requests are a little larger or smaller: what the margins are applied to.
  std::optional<Range> neighbours;
  std::optional<Margin> margin;   ///< of the bounds; none where the allocator is not simulated
  std::int64_t held_at_most = 0;  ///< that chance may keep reserved on top; in the bounds alone
  double most_over = 1;           ///< as of Program
  double reserved_over = 1;       ///< what of the margin of reserved is of this program alone
  Phase peak_phase = Phase::forward;
  std::int64_t model_bytes = 0;
  std::vector<Phase> run;                      ///< the phases of this job, in their order
  std::array<PhaseBytes, kPhaseCount> phases;  ///< by Phase
  std::vector<CategoryLine> breakdown;         ///< all categories, in their order
  std::int64_t rank = 0;                       ///< the worst one, which all of this is about
  bool ranks_differ = false;
  HostMemory host_per_node;
  /// What the resident memory of each process on a node grows by beside; 0: not measured.
  std::int64_t host_growth_of_process = 0;
  std::vector<TrafficLine> traffic;
  TimeEstimate time;  ///< of the typical step, where samples have several lengths
  std::optional<TypicalStep> typical;
  std::optional<ServingEstimate> serving;    ///< of a job that an engine serves
  std::vector<ModelsApart> apart;            ///< of several models: those on GPUs of their own
  std::optional<ManyIterations> iterations;  ///< where those of several models differ
};

/// Where reserved memory comes from.
enum class ReservedMemory : std::uint8_t {
  simulated,  ///< the caching allocator run over every block of the program: milliseconds
  ratio,      ///< allocated times a calibrated ratio, for searches: wide bounds, no time
};

/// Estimates `plan` for `model`. Throws InputError for a plan that cannot be lowered or has
/// sizes beyond 64 bits.
Estimate estimate(const Model& model, const Plan& plan, const Calibration& calibration,
                  ReservedMemory reserved = ReservedMemory::simulated);

/// The same, with passes that other plans may share (run_passes).
Estimate estimate(const Model& model, const Plan& plan, const Passes& passes,
                  const Calibration& calibration,
                  ReservedMemory reserved = ReservedMemory::simulated);

/// What Estimate::device.upper of a simulated estimate is at least when live tensors peak at
/// `allocated`: the allocator never holds less than what is alive. For searches, which rule plans
/// out with it before they simulate the allocator.
std::int64_t least_device_upper(const Plan& plan, const Calibration& calibration,
                                std::int64_t allocated);

}  // namespace shardplan
