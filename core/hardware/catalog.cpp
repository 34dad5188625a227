#include "hardware/catalog.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/nearest.h"
#include "base/units.h"

namespace shardplan {
namespace {

template <typename Rows, typename Name>
auto find_row(const Rows& rows, std::string_view name, Name name_of_row) -> decltype(rows.data()) {
  const std::string wanted = normalized(name);
  for (const auto& row : rows)
    if (normalized(name_of_row(row)) == wanted) return &row;
  return nullptr;
}

}  // namespace

const CatalogGpu* find_gpu(const HardwareCatalog& catalog, std::string_view name) {
  return find_row(catalog.gpus, name,
                  [](const CatalogGpu& row) -> const std::string& { return row.gpu.name; });
}

const Link* find_link(const HardwareCatalog& catalog, std::string_view name) {
  return find_row(catalog.links, name,
                  [](const Link& row) -> const std::string& { return row.name; });
}

const Storage* find_storage(const HardwareCatalog& catalog, std::string_view name) {
  return find_row(catalog.storage, name,
                  [](const Storage& row) -> const std::string& { return row.name; });
}

const Instance* find_instance(const HardwareCatalog& catalog, std::string_view name_or_alias) {
  const std::string wanted = normalized(name_or_alias);
  for (const Instance& row : catalog.instances) {
    if (normalized(row.name) == wanted) return &row;
    for (const std::string& alias : row.aliases)
      if (normalized(alias) == wanted) return &row;
  }
  return nullptr;
}

double typical_usable_ratio(const HardwareCatalog& catalog) {
  std::vector<double> ratios;
  for (const CatalogGpu& row : catalog.gpus)
    if (row.gpu.usable_source == Source::measured)
      ratios.push_back(row.gpu.usable.gib() / static_cast<double>(row.memory_gb));
  if (ratios.empty()) return 1.0;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

Bytes typical_usable(const HardwareCatalog& catalog, std::int64_t memory_gb) {
  const double marketing = static_cast<double>(checked_mul(memory_gb, kGiB));
  return Bytes(static_cast<std::int64_t>(std::floor(marketing * typical_usable_ratio(catalog))));
}

bool is_unverified(const std::vector<std::string>& unverified, std::string_view field) {
  return std::find(unverified.begin(), unverified.end(), field) != unverified.end();
}

}  // namespace shardplan
