// Typed access to a JSON object. Every error names the file, the path of the key, what was found
// and what was expected; unknown keys are reported with the nearest known spelling.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "json/document.h"

namespace shardplan {

class ObjectReader {
 public:
  /// `path` is the key path of this object in the file ("" for the root). Throws if `value` is not
  /// an object. The reader refers to `value`, which must outlive it.
  ObjectReader(const Json& value, std::string file, std::string path = "");

  const std::string& file() const { return file_; }
  const std::string& path() const { return path_; }
  std::string path_of(std::string_view key) const;

  /// The value, or nullptr when the key is absent or null. Marks the key as known.
  const Json* find(std::string_view key);
  /// True when the key is there, null included. Marks the key as known.
  bool has(std::string_view key);

  // Absent or null gives nullopt; a value of another type throws. Integers may be written as
  // numbers without a fraction (5e8). Bounds are inclusive.
  std::optional<std::int64_t> integer(std::string_view key,
                                      std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::optional<double> number(std::string_view key, double least = -1e300, double most = 1e300);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<ObjectReader> object(std::string_view key);
  const Json* array(std::string_view key);

  /// One of `allowed`; anything else throws with the nearest of them.
  std::optional<std::string> choice(std::string_view key, const std::vector<std::string>& allowed);

  /// Throws for the first key that nothing asked for.
  void finish() const;

  [[noreturn]] void fail(std::string_view key, Said message, Said expected = "",
                         std::string nearest = "") const;
  /// For a key that must be there: where one that nothing asked for is spelt nearly so, about that.
  [[noreturn]] void missing(std::string_view key, Said expected) const;

 private:
  const Json* value_;
  std::string file_;
  std::string path_;
  std::vector<std::string> known_;
};

/// "an integer", "a string", "5.5": how an unexpected value is shown in a message.
std::string describe(const Json& value);

}  // namespace shardplan
