#include "models/headroom.h"

#include "base/checked.h"
#include "base/diagnostic.h"
#include "estimate/estimate.h"
#include "questions/largest.h"

namespace shardplan::gui {
namespace {

struct Stopped {};

}  // namespace

std::optional<Headroom> headroom_of(const Job& job, const Calibration& calibration,
                                    const std::stop_token& stop) {
  if (job.plan.workload.kind != WorkKind::train || job.rlhf) return std::nullopt;
  constexpr std::int64_t kMost = 1 << 16;
  try {
    const LargestResult largest = largest_fitting(1, kMost, [&](std::int64_t micro_batch) {
      if (stop.stop_requested()) throw Stopped();
      Plan plan = job.plan;
      plan.workload.micro_batch = micro_batch;
      return estimate(job.model, plan, calibration);
    });
    return Headroom{largest.value, largest.probably};
  } catch (const Stopped&) {
  } catch (const InputError&) {
  } catch (const OverflowError&) {
  }
  return std::nullopt;
}

}  // namespace shardplan::gui
