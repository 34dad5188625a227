#include "load/abilities.h"

#include <type_traits>

#include "base/units.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostBytes = 64 * kGiB;  // of a workspace; lanes and alignments are far less

template <typename T>
std::optional<T> read_value(ObjectReader& in, std::string_view key) {
  if constexpr (std::is_same_v<T, std::string>) {
    return in.text(key);
  } else if constexpr (std::is_same_v<T, bool>) {
    return in.boolean(key);
  } else {
    return in.integer(key, key.ends_with("workspace_bytes") ? 0 : 1, kMostBytes);
  }
}

}  // namespace

StatedAbilities read_abilities(ObjectReader& in) {
  StatedAbilities out;
  for (const AbilityField& field : kAbilityFields) {
    std::visit(
        [&](auto member) {
          using T = std::remove_reference_t<decltype(out.values.*member)>;
          const auto value = read_value<T>(in, field.key);
          if (!value) return;
          out.values.*member = *value;
          out.keys.emplace_back(field.key);
        },
        field.member);
  }
  return out;
}

}  // namespace shardplan
