#include "options/option.h"

#include <algorithm>

namespace shardplan {

bool is_said(const OptionValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return false;
  if (const auto* names = std::get_if<std::vector<std::string>>(&value)) return !names->empty();
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value))
    return !numbers->empty();
  return true;
}

const NamedValue* find_choice(std::span<const NamedValue> choices, std::string_view name) {
  const auto at = std::find_if(choices.begin(), choices.end(), [&](const NamedValue& choice) {
    return choice.name == name || (!choice.former.empty() && choice.former == name);
  });
  return at == choices.end() ? nullptr : &*at;
}

std::string_view name_in(std::span<const NamedValue> choices, std::int64_t value) {
  const auto at = std::find_if(choices.begin(), choices.end(),
                               [&](const NamedValue& choice) { return choice.value == value; });
  return at == choices.end() ? std::string_view() : at->name;
}

std::int64_t pass_number(const OptionValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* fraction = std::get_if<double>(&value))
    return static_cast<std::int64_t>(*fraction * 1e9);
  return -1;
}

}  // namespace shardplan
