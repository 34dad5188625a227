#include "load/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/quantity.h"
#include "formats/dtype.h"
#include "options/words.h"

namespace shardplan {
namespace {

std::vector<std::string> names_of(std::span<const NamedValue> choices) {
  std::vector<std::string> names;
  for (const NamedValue& choice : choices) names.emplace_back(choice.name);
  return names;
}

/// Names first, then the other words for them: what a misspelt one may have meant.
std::vector<std::string> words_for(std::span<const NamedValue> choices) {
  std::vector<std::string> words = names_of(choices);
  for (const NamedValue& choice : choices)
    for (const std::string_view word : words_of(choice.also)) words.emplace_back(word);
  return words;
}

OptionValue read_named(ObjectReader& object, const OptionInfo& option) {
  const auto name = object.text(option.key);
  if (!name) return {};
  if (const NamedValue* choice = find_choice(option.choices, *name)) return choice->value;
  const std::vector<std::string> words = words_for(option.choices);
  object.fail(option.key, fmt::format("unknown value '{}'", *name),
              fmt::format("one of {}", fmt::join(names_of(option.choices), ", ")),
              nearest(*name, std::span<const std::string>(words)));
}

/// Also by PyTorch's names: "bfloat16".
OptionValue read_dtype(ObjectReader& object, const OptionInfo& option) {
  const auto name = object.text(option.key);
  if (!name) return {};
  const auto type = parse_dtype(*name);
  if (type && !name_in(option.choices, static_cast<std::int64_t>(*type)).empty())
    return static_cast<std::int64_t>(*type);
  const std::vector<std::string> known = names_of(option.choices);
  object.fail(option.key, fmt::format("unknown dtype '{}'", *name), in_words(option.choices),
              nearest(*name, std::span<const std::string>(known)));
}

OptionValue read_texts(ObjectReader& object, const OptionInfo& option) {
  const Json* values = object.array(option.key);
  if (values == nullptr) return {};
  std::vector<std::string> texts;
  for (const Json& value : *values) {
    if (!value.is_string())
      object.fail(option.key, say("found {}", describe(value)), option.elements);
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

/// One of the choices, or a list of them.
OptionValue read_chosen_texts(ObjectReader& object, const OptionInfo& option) {
  const Json* value = object.find(option.key);
  if (value == nullptr || value->is_null()) return {};
  std::vector<std::string> texts;
  if (value->is_string())
    texts.push_back(value->get<std::string>());
  else
    texts = std::get<std::vector<std::string>>(read_texts(object, option));
  const std::vector<std::string> known = names_of(option.choices);
  for (const std::string& text : texts)
    if (find_choice(option.choices, text) == nullptr)
      object.fail(option.key, fmt::format("unknown value '{}'", text), in_words(option.choices),
                  nearest(text, std::span<const std::string>(known)));
  return texts;
}

OptionValue read_integers(ObjectReader& object, const OptionInfo& option) {
  const Json* values = object.array(option.key);
  if (values == nullptr) return {};
  std::vector<std::int64_t> numbers;
  for (const Json& value : *values) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < option.integers.least ||
        value.get<std::int64_t>() > option.integers.most)
      object.fail(option.key, say("found {}", describe(value)), option.elements);
    numbers.push_back(value.get<std::int64_t>());
  }
  return numbers;
}

/// An amount with letters, "8k", as the number that it is; else the object as it stands: a number
/// in quotes is a mistake.
ObjectReader with_number(ObjectReader& object, const OptionInfo& option, Json& number) {
  const Json* value = object.find(option.key);
  if (value == nullptr || !value->is_string()) return object;
  const auto text = value->get<std::string>();
  const auto amount = parse_quantity(text, option.magnitude);
  if (!amount || Json::accept(text)) return object;
  number = Json{{option.key, *amount}};
  return {number, object.file(), object.path()};
}

template <typename T>
OptionValue or_nothing(std::optional<T> value) {
  return value ? OptionValue(std::move(*value)) : OptionValue();
}

}  // namespace

OptionValue read_value(ObjectReader& object, const OptionInfo& option) {
  Json number;
  switch (option.kind) {
    case OptionKind::boolean:
      return or_nothing(object.boolean(option.key));
    case OptionKind::integer:
      return or_nothing(with_number(object, option, number)
                            .integer(option.key, option.integers.least, option.integers.most));
    case OptionKind::number:
      return or_nothing(with_number(object, option, number)
                            .number(option.key, option.numbers.least, option.numbers.most));
    case OptionKind::text:
      return or_nothing(object.text(option.key));
    case OptionKind::choice:
      return read_named(object, option);
    case OptionKind::dtype:
      return read_dtype(object, option);
    case OptionKind::texts:
      return option.choices.empty() ? read_texts(object, option)
                                    : read_chosen_texts(object, option);
    case OptionKind::integers:
      return read_integers(object, option);
    case OptionKind::block:
      break;
  }
  throw std::logic_error("option " + std::string(option.key) + " is no single value");
}

}  // namespace shardplan
