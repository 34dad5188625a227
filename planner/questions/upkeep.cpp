#include "questions/upkeep.h"

#include <cmath>

namespace shardplan {

double young_interval(double save_seconds, double failure_seconds) {
  return std::sqrt(2 * save_seconds * failure_seconds);
}

double daly_interval(double save_seconds, double failure_seconds) {
  const double ratio = save_seconds / (2 * failure_seconds);
  if (ratio >= 1) return failure_seconds;
  return young_interval(save_seconds, failure_seconds) * (1 + std::sqrt(ratio) / 3 + ratio / 9) -
         save_seconds;
}

double goodput_of(double interval_seconds, double save_seconds, double restart_seconds,
                  double failure_seconds) {
  const double m = failure_seconds;
  return interval_seconds /
         (m * std::exp(restart_seconds / m) * std::expm1((interval_seconds + save_seconds) / m));
}

std::optional<Upkeep> upkeep_of(const Model& model, const Plan& plan) {
  const Cluster& cluster = plan.cluster;
  if (plan.workload.kind != WorkKind::train || !cluster.checkpoint_storage || !cluster.failures)
    return std::nullopt;
  const auto saved = saved_run(model, plan);
  if (!saved) return std::nullopt;
  constexpr double kSecondsOfHour = 3600;
  Upkeep u{.saved = *saved};
  const auto seconds = [](Bytes bytes, double rate) {
    return static_cast<double>(bytes.count()) / rate;
  };
  u.save_seconds = seconds(saved->written_by_node, cluster.checkpoint_storage->write_bandwidth);
  u.load_seconds = seconds(saved->read_by_node, cluster.checkpoint_storage->read_bandwidth);
  u.failure_seconds =
      cluster.failures->node_hours * kSecondsOfHour / static_cast<double>(cluster.nodes);
  u.restart_seconds = cluster.failures->restart_seconds;
  u.young_seconds = young_interval(u.save_seconds, u.failure_seconds);
  u.interval_seconds = daly_interval(u.save_seconds, u.failure_seconds);
  u.goodput = goodput_of(u.interval_seconds, u.save_seconds, u.restart_seconds + u.load_seconds,
                         u.failure_seconds);
  return u;
}

}  // namespace shardplan
