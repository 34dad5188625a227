#include "lint/rules/nvme/family.h"

#include <array>

namespace shardplan::lint_rules::nvme {

bool on_nvme(const DsValues& values, const std::string& block) {
  return values.stage() == 3 && values.maybe_text(block + ".device") == "nvme";
}

bool anything_on_nvme(const DsValues& values) {
  return on_nvme(values, kOffloadOptimizer) || on_nvme(values, kOffloadParam);
}

std::vector<std::pair<std::string, std::string>> nvme_paths(const DsValues& values) {
  std::vector<std::pair<std::string, std::string>> paths;
  for (const std::string block : {kOffloadOptimizer, kOffloadParam}) {
    const std::string key = block + ".nvme_path";
    const std::string path = values.maybe_text(key).value_or("");
    if (on_nvme(values, block) && !path.empty()) paths.emplace_back(key, path);
  }
  return paths;
}

std::span<const LintRule> all() {
  static const std::array kRules{
      relative_path(),        volatile_path(), no_device(),
      block_size_alignment(), few_requests(),  small_buffer(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::nvme
