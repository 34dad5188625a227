#include "load/ds_config/values.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "load/ds_config/schema.h"

namespace shardplan {

const Json* value_at(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (!path.empty()) {
    if (!at->is_object()) return nullptr;
    const std::size_t dot = path.find('.');
    const auto it = at->find(path.substr(0, dot));
    if (it == at->end()) return nullptr;
    at = &*it;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

void set_value(Json& document, std::string_view path, Json value) {
  Json* at = &document;
  while (true) {
    const std::size_t dot = path.find('.');
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) break;
    path = path.substr(dot + 1);
  }
  *at = std::move(value);
}

void remove_value(Json& document, std::string_view path) {
  Json* at = &document;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const auto it = at->is_object() ? at->find(path.substr(0, dot)) : at->end();
    if (it == at->end()) return;
    at = &*it;
    path = path.substr(dot + 1);
  }
  if (at->is_object()) at->erase(std::string(path));
}

std::int64_t integer_of(const Json& number) {
  return number.is_number_float() ? static_cast<std::int64_t>(number.get<double>())
                                  : number.get<std::int64_t>();
}

const Json* DsValues::given(std::string_view path) const {
  return value_at(*document_, path);
}

const Json& DsValues::value(std::string_view path) const {
  static const Json none;
  if (const Json* here = given(path)) return *here;
  const DsNode* key = ds_schema().find(path);
  if (key == nullptr) throw std::logic_error("no DeepSpeed key " + std::string(path));
  return key->block ? none : key->default_at(version_);
}

bool DsValues::flag(std::string_view path) const {
  const Json& here = value(path);
  return here.is_boolean() && here.get<bool>();
}

std::int64_t DsValues::integer(std::string_view path) const {
  return integer_of(value(path));
}

double DsValues::number(std::string_view path) const {
  return value(path).get<double>();
}

std::string DsValues::text(std::string_view path) const {
  return value(path).get<std::string>();
}

std::optional<std::int64_t> DsValues::maybe_integer(std::string_view path) const {
  const Json& here = value(path);
  if (!here.is_number()) return std::nullopt;
  return integer_of(here);
}

std::optional<std::string> DsValues::maybe_text(std::string_view path) const {
  const Json& here = value(path);
  if (!here.is_string()) return std::nullopt;
  return here.get<std::string>();
}

bool offloads_optimizer(const DsValues& values) {
  return values.maybe_text("zero_optimization.offload_optimizer.device").value_or("none") != "none";
}

}  // namespace shardplan
