#include "lint/rules/host/family.h"

#include <array>

namespace shardplan::lint_rules::host {

std::optional<std::int64_t> host_memory(const LintSubject& s) {
  if (s.priced == nullptr) return std::nullopt;
  const auto& memory = s.priced->job().plan.cluster.host_memory;
  return memory ? std::optional(memory->count()) : std::nullopt;
}

std::span<const LintRule> all() {
  static const std::array kRules{
      pinned_by_default(), save_shards_only(),     fit_host(), fit_nvme(),
      every_rank_loads(),  save_gathers_on_host(), pinned(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::host
