#include "load/catalog/fields.h"

#include <utility>

namespace shardplan::catalog {

std::string required_text(ObjectReader& in, std::string_view key) {
  auto value = in.text(key);
  if (!value) in.fail(key, "is missing", "a string");
  return *std::move(value);
}

std::int64_t required_integer(ObjectReader& in, std::string_view key) {
  const auto value = in.integer(key, 1);
  if (!value) in.fail(key, "is missing", "an integer of at least 1");
  return *value;
}

double required_number(ObjectReader& in, std::string_view key) {
  const auto value = in.number(key, 0);
  if (!value) in.fail(key, "is missing", "a number");
  return *value;
}

ObjectReader required_object(ObjectReader& in, std::string_view key) {
  auto value = in.object(key);
  if (!value) in.fail(key, "is missing", "an object");
  return *std::move(value);
}

std::optional<double> scaled(ObjectReader& in, std::string_view key, double unit) {
  const auto value = in.number(key, 0);
  if (!value) return std::nullopt;
  return *value * unit;
}

std::vector<std::string> strings(ObjectReader& in, std::string_view key) {
  std::vector<std::string> out;
  const Json* list = in.array(key);
  if (list == nullptr) return out;
  for (const Json& item : *list) {
    if (!item.is_string()) in.fail(key, "found " + describe(item), "an array of strings");
    out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace shardplan::catalog
