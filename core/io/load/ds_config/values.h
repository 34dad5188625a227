// A checked ds_config: values as given, or the default of the DeepSpeed version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frameworks/deepspeed/options.h"
#include "json/document.h"

namespace shardplan {

/// Refers to a document in which every value has the type that the schema gives it.
class DsValues {
 public:
  DsValues(const Json& document, DeepSpeedVersion version)
      : document_(&document), version_(version) {}

  const DeepSpeedVersion& version() const { return version_; }

  /// What the file says, or nullptr.
  const Json* given(std::string_view path) const;

  // Given or default. Asking for a key that has neither, or as another type, is a mistake of this
  // program. The optional forms answer nullopt where there is neither.
  bool flag(std::string_view path) const;
  std::int64_t integer(std::string_view path) const;
  double number(std::string_view path) const;
  std::string text(std::string_view path) const;
  std::optional<std::int64_t> maybe_integer(std::string_view path) const;
  std::optional<std::string> maybe_text(std::string_view path) const;

  int stage() const { return static_cast<int>(integer("zero_optimization.stage")); }

 private:
  const Json& value(std::string_view path) const;

  const Json* document_;
  DeepSpeedVersion version_;
};

/// Whether the optimizer states and its step leave the GPU.
bool offloads_optimizer(const DsValues& values);

/// The value at a path of nested objects, or nullptr.
const Json* value_at(const Json& document, std::string_view path);

/// Sets, or removes, the value at a path; blocks on the way are made as needed.
void set_value(Json& document, std::string_view path, Json value);
void remove_value(Json& document, std::string_view path);

/// An integer of JSON, also where it is written 5e8.
std::int64_t integer_of(const Json& number);

}  // namespace shardplan
