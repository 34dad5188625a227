#include "load/ds_config/coerce.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/nearest.h"
#include "json/reader.h"

namespace shardplan {
namespace {

/// A whole number that fits 64 bits, written as an integer or as 5e8.
std::optional<std::int64_t> whole(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(n);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double x = value.get<double>();
  if (std::floor(x) != x || std::abs(x) > 9e18) return std::nullopt;
  return static_cast<std::int64_t>(x);
}

std::optional<double> number_in(const std::string& text) {
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(x))
    return std::nullopt;
  return x;
}

/// The words that pydantic reads as booleans.
std::optional<bool> boolean_in(const std::string& text) {
  const std::string word = lower(text);
  for (const std::string_view yes : {"true", "t", "yes", "y", "on", "1"})
    if (word == yes) return true;
  for (const std::string_view no : {"false", "f", "no", "n", "off", "0"})
    if (word == no) return false;
  return std::nullopt;
}

Coerced accepted(Json value, Said remark = "") {
  return {.value = std::move(value), .remark = std::move(remark)};
}

/// What Python's `if` makes of a value.
bool truth_of(const Json& value) {
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_number() ? value.get<double>() != 0 : !value.empty();
}

Coerced as_boolean(const Json& value, const DsNode& key, bool typed_block) {
  if (value.is_boolean()) return accepted(value);
  if (key.truth)
    return accepted(truth_of(value), say("{} is read as {}", value.dump(), truth_of(value)));
  const auto number = whole(value);
  if (number && (*number == 0 || *number == 1))
    return accepted(*number == 1, say("{} is read as {}", *number, *number == 1));
  if (typed_block && value.is_string())
    if (const auto flag = boolean_in(value.get<std::string>()))
      return accepted(*flag, say("{} is read as {}", value.dump(), *flag));
  return {};
}

/// fp16's scale keys are checked before pydantic converts them (runtime/precision_config.py).
bool refuses_booleans(const DsNode& key) {
  return key.path == "fp16.loss_scale" || key.path == "fp16.loss_scale_window" ||
         key.path == "fp16.min_loss_scale";
}

Coerced as_number(const Json& value, const DsNode& key, bool typed_block, bool integer) {
  const auto of = [&](const Json& number, Said remark) -> Coerced {
    if (!integer) return accepted(number, std::move(remark));
    const auto n = whole(number);
    return n ? accepted(*n, std::move(remark)) : Coerced{};
  };
  if (value.is_number()) {
    // The schedulers ask Python for an int, and 1e3 is a float there (runtime/lr_schedules.py).
    const bool argument = integer && value.is_number_float() && key.path.starts_with("scheduler.");
    return of(value, argument ? "DeepSpeed wants it without point and exponent" : "");
  }
  if (!typed_block) return {};
  if (value.is_boolean() && !refuses_booleans(key))
    return of(value.get<bool>() ? 1 : 0, say("{} is read as a number", value.dump()));
  if (value.is_string())
    if (const auto number = number_in(value.get<std::string>()))
      return of(*number, say("{} is read as a number", value.dump()));
  return {};
}

Coerced as_list(const Json& value, const DsNode& key) {
  if (!value.is_array()) return {};
  for (const Json& element : value) {
    if (!key.element) break;
    const bool right = (*key.element == DsType::text && element.is_string()) ||
                       (*key.element == DsType::integer && whole(element)) ||
                       (*key.element == DsType::number && element.is_number());
    if (!right) return {};
  }
  return accepted(value);
}

Coerced as_type(const Json& value, const DsNode& key, DsType type, bool typed_block) {
  switch (type) {
    case DsType::boolean:
      return as_boolean(value, key, typed_block);
    case DsType::integer:
      return as_number(value, key, typed_block, true);
    case DsType::number:
      return as_number(value, key, typed_block, false);
    case DsType::text:
      return value.is_string() ? accepted(value) : Coerced{};
    case DsType::list:
      return as_list(value, key);
    case DsType::dict:
      return value.is_object() ? accepted(value) : Coerced{};
    case DsType::any:
      return accepted(value);
    case DsType::runtime:
      return {};
  }
  return {};
}

bool in_range(const Json& value, const DsNode& key) {
  if (!value.is_number()) return true;
  const double x = value.get<double>();
  return (!key.least || x >= *key.least) && (!key.most || x <= *key.most);
}

/// The allowed value that `value` is, in its own spelling.
const Json* choice_of(const Json& value, const DsNode& key) {
  for (const Json& allowed : key.one_of) {
    if (allowed == value) return &allowed;
    if (key.any_case && value.is_string() && allowed.is_string() &&
        lower(allowed.get<std::string>()) == lower(value.get<std::string>()))
      return &allowed;
  }
  return nullptr;
}

std::string nearest_choice(const Json& value, const DsNode& key) {
  std::vector<std::string> names;
  for (const Json& allowed : key.one_of)
    if (allowed.is_string()) names.push_back(allowed.get<std::string>());
  return value.is_string() ? nearest(value.get<std::string>(), std::span<const std::string>(names))
                           : std::string();
}

Said range_text(const DsNode& key, const Said& noun) {
  if (key.least && key.most) return say("{} from {} to {}", noun, *key.least, *key.most);
  if (key.least) return say("{} of at least {}", noun, *key.least);
  return noun;
}

Said type_text(const DsNode& key, DsType type) {
  switch (type) {
    case DsType::boolean:
      return "true or false";
    case DsType::integer:
      return range_text(key, "an integer");
    case DsType::number:
      return range_text(key, "a number");
    case DsType::text:
      return "a string";
    case DsType::list:
      if (!key.element) return "an array";
      return *key.element == DsType::text      ? "an array of strings"
             : *key.element == DsType::integer ? "an array of integers"
                                               : "an array of numbers";
    case DsType::dict:
      return "an object";
    case DsType::any:
      return "a value";
    case DsType::runtime:
      return "nothing: it is a Python object, set in the program";
  }
  return "";
}

}  // namespace

Coerced coerce(const Json& value, const DsNode& key, bool typed_block) {
  for (const DsType type : key.types) {
    Coerced result = as_type(value, key, type, typed_block);
    if (!result.value) continue;
    if (!in_range(*result.value, key)) return {.refusal = Refusal::range};
    if (key.one_of.empty() || result.value->is_array()) return result;
    const Json* choice = choice_of(*result.value, key);
    if (choice == nullptr)
      return {.nearest = nearest_choice(*result.value, key), .refusal = Refusal::choice};
    result.value = *choice;
    return result;
  }
  return {};
}

Said expected_text(const DsNode& key) {
  if (!key.one_of.empty()) {
    std::vector<std::string> names;
    for (const Json& allowed : key.one_of)
      names.push_back(allowed.is_string() ? allowed.get<std::string>() : allowed.dump());
    return say("one of {}", fmt::join(names, ", "));
  }
  Said text;
  for (const DsType type : key.types)
    text = text.empty() ? type_text(key, type) : say("{} or {}", text, type_text(key, type));
  return text;
}

}  // namespace shardplan
