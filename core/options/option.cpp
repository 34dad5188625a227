#include "options/option.h"

#include <algorithm>
#include <string>

#include "base/nearest.h"

namespace shardplan {

bool is_said(const OptionValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return false;
  if (const auto* names = std::get_if<std::vector<std::string>>(&value)) return !names->empty();
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value))
    return !numbers->empty();
  return true;
}

const NamedValue* find_choice(std::span<const NamedValue> choices, std::string_view name) {
  const auto find = [&](auto is_meant) {
    const auto at = std::find_if(choices.begin(), choices.end(), is_meant);
    return at == choices.end() ? nullptr : &*at;
  };
  if (const NamedValue* exact = find([&](const NamedValue& choice) {
        return choice.name == name || (!choice.former.empty() && choice.former == name);
      }))
    return exact;
  const std::string spoken = normalized(name);
  if (spoken.empty()) return nullptr;
  return find([&](const NamedValue& choice) {
    const std::vector<std::string_view> words = words_of(choice.also);
    return normalized(choice.name) == spoken ||
           std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return normalized(word) == spoken; });
  });
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    if (blank > 0) words.push_back(text.substr(0, blank));
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  return words;
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
