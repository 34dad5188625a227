#include "frameworks/planning_registry.h"

#include <array>
#include <stdexcept>

#include "frameworks/registry.h"

namespace shardplan {

extern const FrameworkPlanning kDeepSpeedPlanning, kFsdp2Planning, kDdpPlanning, kSinglePlanning,
    kMegatronPlanning, kNativePlanning, kFsdp1Planning;

namespace {

constexpr std::array<const FrameworkPlanning*, kFrameworkCount> kRows{
    &kDeepSpeedPlanning, &kFsdp2Planning, &kDdpPlanning,    &kSinglePlanning,
    &kMegatronPlanning,  &kFsdp1Planning, &kNativePlanning,
};

}  // namespace

std::span<const FrameworkPlanning* const> all_planning() {
  return kRows;
}

const FrameworkPlanning& planning_of(FrameworkKind kind) {
  for (const FrameworkPlanning* row : kRows)
    if (row->kind == kind) return *row;
  throw std::logic_error("a framework without a row");
}

std::vector<FrameworkKind> searchable_frameworks() {
  std::vector<FrameworkKind> kinds;
  for (const FrameworkPlanning* row : kRows)
    if (row->is_searched) kinds.push_back(row->kind);
  return kinds;
}

std::string searchable_words() {
  const std::vector<FrameworkKind> kinds = searchable_frameworks();
  std::string words;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    words += (i == 0 ? "" : i + 1 < kinds.size() ? ", " : " or ") + std::string(name_of(kinds[i]));
  return words;
}

}  // namespace shardplan
