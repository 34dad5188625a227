#include "load/ds_config/rules/keys/family.h"

#include <array>

#include "base/nearest.h"
#include "json/reader.h"
#include "load/ds_config/version.h"

namespace shardplan::config_rules::keys {

std::string nearest_key(const MetKey& key) {
  const std::size_t dot = key.path.rfind('.');
  const std::string name = dot == std::string::npos ? key.path : key.path.substr(dot + 1);
  std::vector<std::string> siblings;
  for (const DsNode& child : key.block.children) siblings.push_back(child.name);
  std::string near = nearest(name, std::span<const std::string>(siblings));
  if (!near.empty()) return near;
  // The right name in the wrong block.
  const auto elsewhere = ds_schema().paths_named(name);
  if (!elsewhere.empty() && name != "enabled") near = elsewhere.front();
  if (key.path != name && ds_schema().find(name) != nullptr) near = name;  // the top level's
  return near;
}

Said version_text(const MetKey& key) {
  const bool early = key.node->since && key.version < *key.node->since;
  return early ? say("DeepSpeed {} does not know this key, which came with {}",
                     to_string(key.version), to_string(*key.node->since))
               : say("DeepSpeed {} no longer knows this key, which went with {}",
                     to_string(key.version), to_string(*key.node->until));
}

bool refuses_null(const MetKey& key) {
  return key.unknown == DsUnknown::refused || key.path.find('.') == std::string::npos;
}

void report_value(const MetKey& key, const Report& report) {
  report(key.path, say("found {}", describe(key.value)), expected_text(*key.node),
         key.read->nearest);
}

std::span<const KeyRule> all() {
  static const std::array kRules{
      unknown_key(),
      unknown_key_ignored(),
      unknown_argument(),
      inference_key(),
      inference_key_ignored(),
      key_of_other_version(),
      key_of_other_version_ignored(),
      wrong_type(),
      out_of_range(),
      not_a_choice(),
      not_an_object(),
      misread_value(),
      null_value(),
      null_replaces_default(),
  };
  return kRules;
}

std::span<const OverflowRule> of_overflow() {
  static const std::array kRules{
      number_too_large(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all(), of_overflow());
}

}  // namespace shardplan::config_rules::keys
