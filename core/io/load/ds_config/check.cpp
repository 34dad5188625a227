#include "load/ds_config/check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "json/reader.h"
#include "load/ds_config/coerce.h"
#include "load/ds_config/schema.h"
#include "load/ds_config/version.h"

namespace shardplan {
namespace {

RuleId rule_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::range:
      return "ds.out-of-range"_rule;
    case Refusal::choice:
      return "ds.not-a-choice"_rule;
    case Refusal::type:
      break;
  }
  return "ds.wrong-type"_rule;
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
      if (child == nullptr) {
        if (unknown == DsUnknown::open)
          clean[name] = value;
        else
          report_unknown(here, name, node, unknown);
        continue;
      }
      if (!known(*child, here, unknown)) continue;
      auto checked =
          child->block ? sub_block(value, *child, here) : leaf(value, *child, here, unknown);
      if (checked) clean[name] = std::move(*checked);
    }
    return clean;
  }

 private:
  /// False, and reported, for a key that came later or went earlier than this version.
  bool known(const DsNode& node, const std::string& path, DsUnknown unknown) {
    if (node.known_at(version_)) return true;
    const bool early = node.since && version_ < *node.since;
    const Said message = early ? say("DeepSpeed {} does not know this key, which came with {}",
                                     to_string(version_), to_string(*node.since))
                               : say("DeepSpeed {} no longer knows this key, which went with {}",
                                     to_string(version_), to_string(*node.until));
    if (unknown == DsUnknown::refused)
      findings_.error("ds.key-of-other-version"_rule, path, say("{}, and refuses it", message));
    else
      findings_.warning("ds.key-of-other-version-ignored"_rule, path,
                        say("{}, and ignores it", message));
    return false;
  }

  /// A key of deepspeed.init_inference(), or the first part of one.
  bool report_inference_key(const std::string& path, DsUnknown unknown) {
    for (const DsInferenceKey& key : ds_schema().inference_keys()) {
      if (key.path != path && !key.path.starts_with(path + ".")) continue;
      if (unknown == DsUnknown::refused)
        findings_.error("ds.inference-key"_rule, path,
                        "a key of deepspeed.init_inference(), which training refuses", "",
                        key.training);
      else
        findings_.warning("ds.inference-key-ignored"_rule, path,
                          "a key of deepspeed.init_inference(), which training ignores", "",
                          key.training);
      return true;
    }
    return false;
  }

  void report_unknown(const std::string& path, const std::string& name, const DsNode& node,
                      DsUnknown unknown) {
    if (report_inference_key(path, unknown)) return;
    std::vector<std::string> siblings;
    for (const DsNode& child : node.children) siblings.push_back(child.name);
    std::string near = nearest(name, std::span<const std::string>(siblings));
    if (near.empty()) {  // the right name in the wrong block
      const auto elsewhere = ds_schema().paths_named(name);
      if (!elsewhere.empty() && name != "enabled") near = elsewhere.front();
      if (path != name && ds_schema().find(name) != nullptr) near = name;  // the top level's
    }
    switch (unknown) {
      case DsUnknown::refused:
        findings_.error("ds.unknown-key"_rule, path,
                        "unknown key, which DeepSpeed refuses in this block", "", near);
        return;
      case DsUnknown::passed_on:
        findings_.warning("ds.unknown-argument"_rule, path,
                          "not a known argument; it is handed on and may be refused there", "",
                          near);
        return;
      case DsUnknown::ignored:
      case DsUnknown::open:
        findings_.warning("ds.unknown-key-ignored"_rule, path,
                          "unknown key, which DeepSpeed ignores", "", near);
        return;
    }
  }

  std::optional<Json> sub_block(const Json& value, const DsNode& node, const std::string& path) {
    if (value.is_object()) return block(value, node, path);
    if (value.is_null() && node.nullable) return std::nullopt;
    if (node.takes(DsType::boolean) && value.is_boolean()) return value;
    findings_.error("ds.not-an-object"_rule, path, say("found {}", describe(value)), "an object");
    return std::nullopt;
  }

  std::optional<Json> leaf(const Json& value, const DsNode& key, const std::string& path,
                           DsUnknown unknown) {
    if (value.is_null()) {
      if (!key.nullable && !key.takes(DsType::any)) null_value(key, path, unknown);
      return std::nullopt;
    }
    Coerced coerced = coerce(value, key, unknown == DsUnknown::refused);
    if (!coerced.value) {
      findings_.error(rule_of(coerced.refusal), path, say("found {}", describe(value)),
                      expected_text(key), coerced.nearest);
      return std::nullopt;
    }
    if (!coerced.remark.empty())
      findings_.warning("ds.misread-value"_rule, path, coerced.remark, expected_text(key));
    return std::move(coerced.value);
  }

  /// Typed blocks refuse null; plain dictionaries hand on None in place of the default.
  void null_value(const DsNode& key, const std::string& path, DsUnknown unknown) {
    if (unknown == DsUnknown::refused || path.find('.') == std::string::npos)
      findings_.error("ds.null-value"_rule, path, "found null", expected_text(key));
    else
      findings_.warning("ds.null-replaces-default"_rule, path,
                        "null takes the place of the default", expected_text(key));
  }

  DeepSpeedVersion version_;
  DsFindings& findings_;
};

}  // namespace

Json check_keys(const Json& document, const DeepSpeedVersion& version, DsFindings& findings) {
  return Checker(version, findings).block(document, ds_schema().root(), "");
}

}  // namespace shardplan
