// Reading the rows of data/hardware: keys that must be there, units, lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "json/reader.h"

namespace shardplan::catalog {

std::string required_text(ObjectReader& in, std::string_view key);
std::int64_t required_integer(ObjectReader& in, std::string_view key);
double required_number(ObjectReader& in, std::string_view key);
ObjectReader required_object(ObjectReader& in, std::string_view key);

/// The number times `unit`.
std::optional<double> scaled(ObjectReader& in, std::string_view key, double unit);

/// Empty when the key is absent.
std::vector<std::string> strings(ObjectReader& in, std::string_view key);

/// Calls `read` with a reader for every row of the array, and then checks for unknown keys.
template <typename Read>
void for_each_row(ObjectReader& in, std::string_view key, Read read) {
  const Json* rows = in.array(key);
  if (rows == nullptr) in.fail(key, "is missing", "an array");
  std::size_t index = 0;
  for (const Json& row : *rows) {
    ObjectReader reader(row, in.file(), in.path_of(key) + "[" + std::to_string(index++) + "]");
    read(reader);
    reader.finish();
  }
}

}  // namespace shardplan::catalog
