#include "load/ds_config/keys.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "load/ds_config/rules/keys/family.h"

namespace shardplan {
namespace {

/// The key of deepspeed.init_inference() at `path`, or below it.
const DsInferenceKey* inference_key(const std::string& path) {
  for (const DsInferenceKey& key : ds_schema().inference_keys())
    if (key.path == path || key.path.starts_with(path + ".")) return &key;
  return nullptr;
}

class Checker {
 public:
  Checker(const DeepSpeedVersion& version, DsFindings& findings)
      : version_(version), findings_(findings) {}

  Json block(const Json& object, const DsNode& node, const std::string& path) {
    Json clean = Json::object();
    const DsUnknown unknown = node.unknown_at(version_);
    for (const auto& [name, value] : object.items()) {
      const DsNode* child = node.child(name);
      const std::string here = path.empty() ? name : path + "." + name;
      if (child == nullptr && unknown == DsUnknown::open) {
        clean[name] = value;
        continue;
      }
      const MetKey key{KeyProblem::unknown, here, value, node, unknown, version_, child};
      if (auto checked = child == nullptr ? unknown_key(key) : known_key(key))
        clean[name] = std::move(*checked);
    }
    return clean;
  }

 private:
  std::nullopt_t report(MetKey key, KeyProblem problem) {
    key.problem = problem;
    check_rules(config_rules::keys::all(), key, findings_);
    return std::nullopt;
  }

  std::optional<Json> unknown_key(MetKey key) {
    key.inference = inference_key(key.path);
    return report(key, key.inference == nullptr ? KeyProblem::unknown : KeyProblem::inference);
  }

  std::optional<Json> known_key(const MetKey& key) {
    if (!key.node->known_at(version_)) return report(key, KeyProblem::other_version);
    return key.node->block ? sub_block(key) : leaf(key);
  }

  std::optional<Json> sub_block(const MetKey& key) {
    const DsNode& node = *key.node;
    if (key.value.is_object()) return block(key.value, node, key.path);
    if (key.value.is_null() && node.nullable) return std::nullopt;
    if (node.takes(DsType::boolean) && key.value.is_boolean()) return key.value;
    return report(key, KeyProblem::not_an_object);
  }

  std::optional<Json> leaf(MetKey key) {
    const DsNode& node = *key.node;
    if (key.value.is_null()) {
      if (node.nullable || node.takes(DsType::any)) return std::nullopt;
      return report(key, KeyProblem::null_value);
    }
    Coerced coerced = coerce(key.value, node, key.unknown == DsUnknown::refused);
    key.read = &coerced;
    if (!coerced.value) return report(key, KeyProblem::refused_value);
    if (!coerced.remark.empty()) report(key, KeyProblem::misread_value);
    return std::move(coerced.value);
  }

  DeepSpeedVersion version_;
  DsFindings& findings_;
};

}  // namespace

Json check_keys(const Json& document, const DeepSpeedVersion& version, DsFindings& findings) {
  return Checker(version, findings).block(document, ds_schema().root(), "");
}

}  // namespace shardplan
