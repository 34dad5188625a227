#include "lint/rules/time/family.h"

#include <fmt/format.h>
#include <array>

namespace shardplan::lint_rules::time {

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string percent(double part) {
  return fmt::format("{:.0f} %", part * 100);
}

bool offloads(const DsValues& values, const std::string& block) {
  return values.maybe_text(block + ".device").value_or("none") != "none";
}

const char* offload_block(const DsValues& values) {
  if (values.stage() == 0) return nullptr;
  if (offloads(values, kOffloadOptimizer)) return kOffloadOptimizer;
  return values.stage() == 3 && offloads(values, kOffloadParam) ? kOffloadParam : nullptr;
}

std::optional<Priced> without_offload(const PricedJob& job) {
  return job.with({remove_key(kOffloadOptimizer), remove_key(kOffloadParam)});
}

double waiting_share(const PricedJob& job) {
  const TimeEstimate& t = job.estimate().time;
  return share(t.exposed_communication_seconds, t.step_seconds);
}

bool has_slow_network(const Cluster& cluster) {
  constexpr double kSockets = 3.2e9;  // 25 Gbit/s for each GPU
  return cluster.nodes > 1 && cluster.inter_node_bandwidth <= kSockets;
}

std::span<const LintRule> all() {
  static const std::array kRules{
      cpu_adam_build(),
  };
  return kRules;
}

std::span<const PricedRule> priced() {
  static const std::array kRules{
      slow_network(),        stage_3_traffic(),       launch_blocking(),
      zero_stage_unneeded(), zero_offload_unneeded(), offload(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all(), priced());
}

}  // namespace shardplan::lint_rules::time
