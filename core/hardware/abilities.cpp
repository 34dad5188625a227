#include "hardware/abilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/nearest.h"
#include "base/units.h"

namespace shardplan {
namespace {

bool is_stated(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

const CatalogGpu* with_capability(const HardwareCatalog& catalog, std::string_view capability) {
  for (const CatalogGpu& row : catalog.gpus)
    if (!capability.empty() && row.gpu.compute_capability == capability) return &row;
  return nullptr;
}

const CatalogGpu* with_arch(const HardwareCatalog& catalog, std::string_view arch) {
  for (const CatalogGpu& row : catalog.gpus)
    if (!arch.empty() && row.gpu.arch == arch) return &row;
  return nullptr;
}

std::string nearest_capability(const HardwareCatalog& catalog, const std::string& capability) {
  std::vector<std::string> known;
  for (const CatalogGpu& row : catalog.gpus) known.push_back(row.gpu.compute_capability);
  return nearest(capability, std::span<const std::string>(known));
}

/// The likest GPU where neither capability nor architecture is known.
const CatalogGpu* likest(const Gpu& gpu, const HardwareCatalog& catalog) {
  if (const CatalogGpu* row =
          with_capability(catalog, nearest_capability(catalog, gpu.compute_capability)))
    return row;
  const auto of_vendor = [&](const CatalogGpu& row) { return row.gpu.vendor == gpu.vendor; };
  const bool vendor_known = std::any_of(catalog.gpus.begin(), catalog.gpus.end(), of_vendor);
  const std::int64_t memory_gb = gpu.capacity.count() / kGiB;
  const CatalogGpu* like = nullptr;
  const auto distance = [&](const CatalogGpu& row) { return std::abs(row.memory_gb - memory_gb); };
  for (const CatalogGpu& row : catalog.gpus) {
    if (vendor_known && !of_vendor(row)) continue;
    if (like == nullptr || distance(row) < distance(*like)) like = &row;
  }
  return like;
}

}  // namespace

void state(GpuAbilities& abilities, const StatedAbilities& stated) {
  for (const AbilityField& field : kAbilityFields) {
    if (!is_stated(stated.keys, field.key)) continue;
    std::visit([&](auto member) { abilities.*member = stated.values.*member; }, field.member);
  }
}

const Architecture* find_architecture(const HardwareCatalog& catalog, std::string_view name) {
  for (const Architecture& row : catalog.architectures)
    if (row.name == name) return &row;
  return nullptr;
}

void give_abilities(Gpu& gpu, const StatedAbilities& stated, const HardwareCatalog& catalog) {
  const CatalogGpu* like = with_capability(catalog, gpu.compute_capability);
  if (like == nullptr) like = with_arch(catalog, gpu.arch);
  const bool known = like != nullptr;
  if (!known) like = likest(gpu, catalog);
  gpu.assumed_abilities.clear();
  if (like != nullptr) {
    gpu.abilities = like->gpu.abilities;
    gpu.abilities_like = known ? like->gpu.abilities_like : like->gpu.arch;
    for (const AbilityField& field : kAbilityFields)
      if (!known || is_stated(like->gpu.assumed_abilities, field.key))
        gpu.assumed_abilities.emplace_back(field.key);
  }
  state(gpu.abilities, stated);
  gpu.stated_abilities = stated.keys;
  std::erase_if(gpu.assumed_abilities,
                [&](const std::string& key) { return is_stated(stated.keys, key); });
}

std::string abilities_note(const Gpu& gpu) {
  if (gpu.assumed_abilities.empty()) return "";
  std::string what;
  for (const AbilityField& field : kAbilityFields)
    if (is_stated(gpu.assumed_abilities, field.key))
      what += fmt::format("{}{}", what.empty() ? "" : ", ", field.words);
  return fmt::format("what is not known of {} is assumed to be as on {}: {}", gpu.name,
                     gpu.abilities_like, what);
}

}  // namespace shardplan
