#include "import/asked_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "load/cluster.h"

namespace shardplan::importing {

std::optional<std::int64_t> asked_gpus(const Recipe& recipe) {
  if (recipe.processes) return recipe.processes;
  if (recipe.per_machine) return *recipe.per_machine * recipe.machines.value_or(1);
  return std::nullopt;
}

Json counted(const Json& cluster, const Recipe& recipe, const HardwareCatalog& hardware) {
  const auto gpus = asked_gpus(recipe);
  if (!gpus || !cluster.is_string()) return cluster;
  const auto& text = cluster.get_ref<const std::string&>();
  if (text.empty() || (is_digit(text[0]) && text.find('x') != std::string::npos)) return cluster;
  const std::int64_t machines = std::max<std::int64_t>(recipe.machines.value_or(1), 1);
  if (*gpus % machines != 0) return cluster;
  const std::string whole = fmt::format("{}x{}x{}", machines, *gpus / machines, text);
  try {
    load_cluster(whole, "", "cluster", hardware);
  } catch (const InputError&) {
    return cluster;
  }
  return whole;
}

}  // namespace shardplan::importing
