#include "save/options.h"

#include <type_traits>

namespace shardplan {

Json json_of(const OptionInfo& option, const OptionValue& value) {
  return std::visit(
      [&](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, bool>) {
          if (option.choices.empty()) return v;
          return name_in(option.choices, static_cast<std::int64_t>(v));
        } else {
          return v;
        }
      },
      value);
}

}  // namespace shardplan
