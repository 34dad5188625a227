// Reads the options of an object of a job by their table.
#pragma once

#include <stdexcept>

#include "json/reader.h"
#include "options/option.h"

namespace shardplan {

/// The option's value; none when the key is absent or null. Throws InputError for another type, a
/// number out of range or an unknown name, with the nearest one.
OptionValue read_value(ObjectReader& object, const OptionInfo& option);

/// An integer, or a choice as its enumeration: for options that code of its own reads.
template <typename Number>
std::optional<Number> read_as(ObjectReader& object, const OptionInfo& option) {
  const OptionValue value = read_value(object, option);
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? std::nullopt : std::optional(static_cast<Number>(*number));
}

/// The option of the table with that key; a key without one is a mistake of this program.
template <typename Root>
const OptionInfo& info_of(const OptionTable<Root>& table, std::string_view key) {
  for (const Option<Root>& option : table.options)
    if (option.info.key == key) return option.info;
  throw std::logic_error("no option " + std::string(key));
}

/// Takes what `object` says over into `root`, but for options that code of its own reads. What is
/// left open stays as it is.
template <typename Root>
void read_said(ObjectReader& object, const OptionTable<Root>& table, Root& root) {
  for (const Option<Root>& option : table.options) {
    if (option.access.set == nullptr) continue;
    const OptionValue value = read_value(object, option.info);
    if (!std::holds_alternative<std::monostate>(value)) option.access.set(root, value);
  }
}

/// The same, and by their rules what is left open: an empty list too.
template <typename Root>
void read_options(ObjectReader& object, const OptionTable<Root>& table, Root& root) {
  read_said(object, table, root);
  apply_rules(table, root, [&](std::string_view key) {
    const Json* value = object.find(key);
    return value == nullptr || (value->is_array() && value->empty());
  });
}

}  // namespace shardplan
