#include "estimate/margins.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "simulator/block_script.h"

namespace shardplan {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::max();

}  // namespace

AllocatorRegime regime_of(const Plan& plan, const Program& program) {
  switch (plan.workload.kind) {
    case WorkKind::inference:
      return AllocatorRegime::generation;
    case WorkKind::rlhf:
      return AllocatorRegime::iterations;
    case WorkKind::train:
      break;
  }
  return waits_for_streams(program) ? AllocatorRegime::streams : AllocatorRegime::steady;
}

const Margin& margin_of(const std::vector<Margin>& margins, std::string_view framework,
                        AllocatorRegime regime) {
  const Margin* found = nullptr;
  for (const Margin& m : margins) {
    if (m.regime != regime) continue;
    if (m.framework == framework) return m;
    if (m.framework.empty()) found = &m;
  }
  if (found == nullptr) throw std::logic_error("a calibration without a margin for every regime");
  return *found;
}

double least_ratio(const std::vector<Margin>& margins, std::string_view framework) {
  double least = kUnbounded;
  for (const Margin& m : margins)
    if (m.framework.empty() || m.framework == framework)
      least = std::min({least, m.reserved, m.allocated});
  return least;
}

}  // namespace shardplan
