#include "model/config.h"

#include <algorithm>

#include <fmt/format.h>

#include <cmath>

namespace shardplan {
namespace {

std::string show(const ConfigScalar& value) {
  struct Show {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t n) const { return fmt::format("{}", n); }
    std::string operator()(double x) const { return fmt::format("{}", x); }
    std::string operator()(const std::string& s) const { return fmt::format("\"{}\"", s); }
  };
  return std::visit(Show{}, value);
}

}  // namespace

void ModelConfig::fail(std::string_view key, std::string message, std::string expected) const {
  throw InputError({.file = file_,
                    .key = std::string(key),
                    .message = std::move(message),
                    .expected = std::move(expected)});
}

ModelConfig ModelConfig::inner(std::string_view key) const {
  const std::string prefix = std::string(key) + ".";
  std::vector<std::pair<std::string, ConfigValue>> values;
  for (const auto& [name, value] : values_)
    if (name.starts_with(prefix)) values.emplace_back(name.substr(prefix.size()), value);
  return {file_, std::move(values)};
}

ModelConfig ModelConfig::nested(std::string_view key) const {
  ModelConfig copy = *this;
  for (const auto& [name, value] : values_)
    if (name != "model_type" && (name.find('.') == std::string::npos || name.starts_with("rope_")))
      copy.values_.emplace_back(std::string(key) + "." + name, value);
  return copy;
}

ModelConfig ModelConfig::without(std::string_view key) const {
  ModelConfig copy = *this;
  std::erase_if(copy.values_, [&](const auto& entry) { return entry.first == key; });
  return copy;
}

ModelConfig ModelConfig::with(std::string_view key, ConfigScalar value) const {
  ModelConfig copy = without(key);
  copy.values_.emplace_back(std::string(key), ConfigValue(std::move(value)));
  return copy;
}

const ConfigValue* ModelConfig::find(std::string_view key) const {
  for (const auto& [name, value] : values_)
    if (name == key) return &value;
  return nullptr;
}

const ConfigScalar* ModelConfig::scalar(std::string_view key) const {
  const ConfigValue* value = find(key);
  if (value == nullptr) return nullptr;
  const auto* single = std::get_if<ConfigScalar>(value);
  if (single == nullptr) fail(key, "found an array", "a single value");
  return std::holds_alternative<std::monostate>(*single) ? nullptr : single;
}

std::int64_t ModelConfig::bounded(std::string_view key, const ConfigScalar& value,
                                  std::int64_t least) const {
  std::int64_t n = 0;
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    n = *i;
  } else if (const auto* x = std::get_if<double>(&value);
             x != nullptr && std::floor(*x) == *x && std::abs(*x) < 1e15) {
    n = static_cast<std::int64_t>(*x);
  } else {
    fail(key, "found " + show(value), "an integer");
  }
  if (n < least || n > kLargestDimension)
    fail(key, "found " + show(value),
         fmt::format("an integer from {} to {}", least, kLargestDimension));
  return n;
}

std::optional<std::int64_t> ModelConfig::optional_count(
    std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys)
    if (const ConfigScalar* value = scalar(key)) return bounded(key, *value, 1);
  return std::nullopt;
}

std::int64_t ModelConfig::count(std::initializer_list<std::string_view> keys,
                                std::int64_t fallback) const {
  return optional_count(keys).value_or(fallback);
}

std::int64_t ModelConfig::count_or_zero(std::string_view key, std::int64_t fallback) const {
  const ConfigScalar* value = scalar(key);
  return value == nullptr ? fallback : bounded(key, *value, 0);
}

std::optional<std::int64_t> ModelConfig::nullable_count(
    std::string_view key, std::optional<std::int64_t> fallback) const {
  if (!has(key)) return fallback;
  const ConfigScalar* value = scalar(key);
  if (value == nullptr) return std::nullopt;
  return bounded(key, *value, 1);
}

std::int64_t ModelConfig::entries(std::string_view key) const {
  const std::string prefix = std::string(key) + ".";
  return std::count_if(values_.begin(), values_.end(),
                       [&](const auto& v) { return v.first.starts_with(prefix); });
}

bool ModelConfig::is_list(std::string_view key) const {
  const ConfigValue* value = find(key);
  return value != nullptr && std::holds_alternative<std::vector<ConfigScalar>>(*value);
}

bool ModelConfig::is_text(std::string_view key) const {
  const ConfigValue* value = find(key);
  const auto* single = value == nullptr ? nullptr : std::get_if<ConfigScalar>(value);
  return single != nullptr && std::holds_alternative<std::string>(*single);
}

std::int64_t ModelConfig::length(std::string_view key) const {
  return is_list(key) ? std::ssize(std::get<std::vector<ConfigScalar>>(*find(key))) : 0;
}

bool ModelConfig::flag(std::string_view key, bool fallback) const {
  const ConfigScalar* value = scalar(key);
  if (value == nullptr) return fallback;
  if (const auto* b = std::get_if<bool>(value)) return *b;
  fail(key, "found " + show(*value), "true or false");
}

double ModelConfig::number(std::string_view key, double fallback) const {
  const ConfigScalar* value = scalar(key);
  if (value == nullptr) return fallback;
  if (const auto* x = std::get_if<double>(value)) return *x;
  if (const auto* n = std::get_if<std::int64_t>(value)) return static_cast<double>(*n);
  fail(key, "found " + show(*value), "a number");
}

std::string ModelConfig::text(std::string_view key, std::string_view fallback) const {
  const ConfigScalar* value = scalar(key);
  if (value == nullptr) return std::string(fallback);
  if (const auto* s = std::get_if<std::string>(value)) return *s;
  fail(key, "found " + show(*value), "a string");
}

std::vector<std::int64_t> ModelConfig::counts(std::string_view key) const {
  const ConfigValue* value = find(key);
  std::vector<std::int64_t> out;
  if (value == nullptr) return out;
  const auto* list = std::get_if<std::vector<ConfigScalar>>(value);
  if (list == nullptr) {
    if (scalar(key) == nullptr) return out;
    fail(key, "found " + show(std::get<ConfigScalar>(*value)), "an array of integers");
  }
  for (const ConfigScalar& item : *list) out.push_back(bounded(key, item, 0));
  return out;
}

std::vector<double> ModelConfig::numbers(std::string_view key) const {
  const ConfigValue* value = find(key);
  std::vector<double> out;
  if (value == nullptr) return out;
  const auto* list = std::get_if<std::vector<ConfigScalar>>(value);
  if (list == nullptr) {
    if (scalar(key) == nullptr) return out;
    fail(key, "found " + show(std::get<ConfigScalar>(*value)), "an array of numbers");
  }
  for (const ConfigScalar& item : *list) {
    if (const auto* x = std::get_if<double>(&item))
      out.push_back(*x);
    else if (const auto* n = std::get_if<std::int64_t>(&item))
      out.push_back(static_cast<double>(*n));
    else
      fail(key, "found " + show(item), "an array of numbers");
  }
  return out;
}

std::vector<std::string> ModelConfig::texts(std::string_view key) const {
  const ConfigValue* value = find(key);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  const auto* list = std::get_if<std::vector<ConfigScalar>>(value);
  if (list == nullptr) {
    if (scalar(key) == nullptr) return out;
    fail(key, "found " + show(std::get<ConfigScalar>(*value)), "an array of strings");
  }
  for (const ConfigScalar& item : *list) {
    const auto* s = std::get_if<std::string>(&item);
    if (s == nullptr) fail(key, "found " + show(item), "a string");
    out.push_back(*s);
  }
  return out;
}

void ModelConfig::require_divisible(std::string_view key, std::int64_t value,
                                    std::string_view divisor_key, std::int64_t divisor) const {
  if (divisor > 0 && value % divisor == 0) return;
  fail(key, fmt::format("{} is not divisible by {} = {}", value, divisor_key, divisor),
       fmt::format("a multiple of {}", divisor));
}

}  // namespace shardplan
