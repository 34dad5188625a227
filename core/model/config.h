// A Hugging Face config.json as plain data, with the questions that architectures ask of it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/diagnostic.h"

namespace shardplan {

/// A JSON null is monostate; nested objects are flattened: "rope_parameters.rope_theta".
using ConfigScalar = std::variant<std::monostate, bool, std::int64_t, double, std::string>;
using ConfigValue = std::variant<ConfigScalar, std::vector<ConfigScalar>>;

/// Dimensions beyond this are mistakes; products of a few of them still fit in 64 bits.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 31;

class ModelConfig {
 public:
  ModelConfig(std::string file, std::vector<std::pair<std::string, ConfigValue>> values)
      : file_(std::move(file)), values_(std::move(values)) {}

  const std::string& file() const { return file_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The object at `key` as a configuration of its own ("text_config"); empty when absent.
  ModelConfig inner(std::string_view key) const;
  /// The same configuration with another value at `key`.
  ModelConfig with(std::string_view key, ConfigScalar value) const;
  /// The values beside inner objects also inside an object at `key`.
  ModelConfig nested(std::string_view key) const;
  ModelConfig without(std::string_view key) const;

  /// A dimension or count: an integer from 1 to kLargestDimension. The first of `keys` that is
  /// there and not null counts (aliases of one attribute); otherwise `fallback`, the class default.
  std::int64_t count(std::initializer_list<std::string_view> keys, std::int64_t fallback) const;
  /// As count, but 0 is allowed.
  std::int64_t count_or_zero(std::string_view key, std::int64_t fallback) const;
  /// nullopt when absent or null.
  std::optional<std::int64_t> optional_count(std::initializer_list<std::string_view> keys) const;
  /// Absent gives `fallback`; an explicit null gives nullopt (some classes tell the two apart).
  std::optional<std::int64_t> nullable_count(std::string_view key,
                                             std::optional<std::int64_t> fallback) const;

  /// How many values the object at `key` has ("id2label"), 0 when absent.
  std::int64_t entries(std::string_view key) const;
  bool flag(std::string_view key, bool fallback) const;
  double number(std::string_view key, double fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  bool is_list(std::string_view key) const;
  /// Whether the value at `key` is a string ("auto" in place of a number).
  bool is_text(std::string_view key) const;
  /// Values in the list at `key`; 0 when it is none.
  std::int64_t length(std::string_view key) const;
  /// Absent or null gives an empty list.
  std::vector<std::int64_t> counts(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

  /// Throws unless `divisor` divides `value`: "hidden_size: 4095 is not divisible by
  /// num_attention_heads = 32".
  void require_divisible(std::string_view key, std::int64_t value, std::string_view divisor_key,
                         std::int64_t divisor) const;
  [[noreturn]] void fail(std::string_view key, std::string message,
                         std::string expected = "") const;

 private:
  const ConfigValue* find(std::string_view key) const;
  const ConfigScalar* scalar(std::string_view key) const;  ///< nullptr when absent or null
  std::int64_t bounded(std::string_view key, const ConfigScalar& value, std::int64_t least) const;

  std::string file_;
  std::vector<std::pair<std::string, ConfigValue>> values_;
};

}  // namespace shardplan
