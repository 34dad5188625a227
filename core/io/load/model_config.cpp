#include "load/model_config.h"

#include <nlohmann/json.hpp>

#include "json/reader.h"

namespace shardplan {
namespace {

using Values = std::vector<std::pair<std::string, ConfigValue>>;

ConfigScalar scalar_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > 0x7fffffffffffffffULL)
    return static_cast<double>(value.get<std::uint64_t>());
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return std::monostate{};
}

void flatten(const Json& object, const std::string& prefix, Values& out) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object() && value.empty()) {
      out.emplace_back(name, std::vector<ConfigScalar>{});  // there, with nothing but defaults
    } else if (value.is_object()) {
      flatten(value, name, out);
    } else if (value.is_array()) {
      std::vector<ConfigScalar> list;
      for (const Json& item : value) list.push_back(scalar_of(item));
      out.emplace_back(name, std::move(list));
    } else {
      out.emplace_back(name, scalar_of(value));
    }
  }
}

}  // namespace

ModelConfig load_model_config(const Json& config, const std::string& file) {
  const ObjectReader root(config, file);  // a configuration is an object
  Values values;
  flatten(config, "", values);
  return ModelConfig(file, std::move(values));
}

}  // namespace shardplan
