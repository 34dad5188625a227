#include "load/ds_config/schema.h"

#include <algorithm>
#include <stdexcept>

#include "embedded/json.h"
#include "frameworks/deepspeed/config_table.h"
#include "load/ds_config/version.h"
#include "save/options.h"

namespace shardplan {
namespace {

/// The schema is ours: a mistake in it is a mistake of this program.
[[noreturn]] void broken(const std::string& what) {
  throw std::logic_error("data/deepspeed/schema.json: " + what);
}

DsType type_named(const std::string& name) {
  if (name == "bool") return DsType::boolean;
  if (name == "int") return DsType::integer;
  if (name == "float") return DsType::number;
  if (name == "str") return DsType::text;
  if (name.starts_with("list")) return DsType::list;
  if (name == "dict") return DsType::dict;
  if (name == "any") return DsType::any;
  if (name == "runtime") return DsType::runtime;
  broken("unknown type " + name);
}

DsUnknown unknown_named(const std::string& name) {
  if (name == "refused") return DsUnknown::refused;
  if (name == "ignored") return DsUnknown::ignored;
  if (name == "passed_on") return DsUnknown::passed_on;
  if (name == "open") return DsUnknown::open;
  broken("unknown treatment " + name);
}

DeepSpeedVersion version_in(const Json& text) {
  const auto version = parse_deepspeed_version(text.get_ref<const std::string&>());
  if (!version) broken("bad version " + text.dump());
  return *version;
}

void read_types(DsNode& node, const Json& type) {
  const auto add = [&](const std::string& name) {
    node.types.push_back(type_named(name));
    if (name.starts_with("list[")) node.element = type_named(name.substr(5, name.size() - 6));
  };
  if (type.is_string()) return add(type.get<std::string>());
  for (const Json& one : type) add(one.get<std::string>());
}

DsDeprecation read_deprecation(const Json& json) {
  return {.replacement = json.value("replacement", ""),
          .when_true = json.value("when_true", Json()),
          .kept = json.value("kept", false),
          .ignored = json.value("ignored", false),
          .loses = json.value("loses", false),
          .advice = json.value("advice", "")};
}

/// The fields that keys and blocks share.
void read_common(DsNode& node, const Json& json) {
  for (const auto& [name, value] : json.items()) {
    const std::string_view field = name;
    if (field == "null") node.nullable = value.get<bool>();
    if (field == "stages") node.stages = value.get<std::vector<int>>();
    if (field == "effect") node.effect = value.get<std::string>();
    if (field == "since") node.since = version_in(value);
    if (field == "until") node.until = version_in(value);
    if (field == "note") node.note = value.get<std::string>();
    if (field == "source") node.source = value.get<std::string>();
    if (field == "deprecated") node.deprecated = read_deprecation(value);
  }
}

void read_key(DsNode& node, const Json& json) {
  read_common(node, json);
  for (const auto& [name, value] : json.items()) {
    const std::string_view field = name;
    if (field == "type") read_types(node, value);
    if (field == "default") node.fallback = value;
    if (field == "min") node.least = value.get<double>();
    if (field == "max") node.most = value.get<double>();
    if (field == "one_of") node.one_of.assign(value.begin(), value.end());
    if (field == "any_case") node.any_case = value.get<bool>();
    if (field == "truth") node.truth = value.get<bool>();
    if (field == "for") node.applies_to = value.get<std::vector<std::string>>();
    if (field == "required") node.required = value.get<bool>();
    if (field == "alias_of") node.alias_of = value.get<std::string>();
    if (field == "auto") {
      node.trainer_rule = value.value("trainer", "");
      node.accelerate_rule = value.value("accelerate", "");
    }
    if (field == "changes")
      for (const Json& change : value)
        node.changes.push_back({version_in(change.at("since")), change.at("default")});
  }
}

}  // namespace

const DsNode* DsNode::child(std::string_view child_name) const {
  const DsNode* any = nullptr;
  for (const DsNode& node : children) {
    if (node.name == child_name) return &node;
    if (node.name == "*") any = &node;
  }
  return any;
}

bool DsNode::known_at(const DeepSpeedVersion& version) const {
  return (!since || version >= *since) && (!until || version < *until);
}

bool DsNode::acts_at(int stage) const {
  return stages.empty() || std::find(stages.begin(), stages.end(), stage) != stages.end();
}

bool DsNode::takes(DsType type) const {
  return std::find(types.begin(), types.end(), type) != types.end();
}

DsUnknown DsNode::unknown_at(const DeepSpeedVersion& version) const {
  return refused_since && version < *refused_since ? DsUnknown::ignored : unknown;
}

const Json& DsNode::default_at(const DeepSpeedVersion& version) const {
  const Json* value = &fallback;
  for (const DsChange& change : changes)
    if (version >= change.since) value = &change.value;
  return *value;
}

DsSchema::DsSchema(const Json& schema) {
  for (const Json& block : schema.at("blocks")) {
    DsNode& node = place(block.at("path").get_ref<const std::string&>());
    node.block = true;
    node.unknown = unknown_named(block.at("unknown").get<std::string>());
    if (block.contains("refused_since")) node.refused_since = version_in(block["refused_since"]);
    read_common(node, block);
  }
  for (const Json& key : schema.at("keys")) {
    const auto& path = key.at("path").get_ref<const std::string&>();
    read_key(place(path), key);
    paths_.push_back(path);
  }
  const DeepSpeedOptions newest;
  for (const Option<DeepSpeedOptions>& option : kDsConfigTable.options) {
    DsNode& node = place(option.info.key);
    if (node.types.empty()) broken("lacks " + std::string(option.info.key));
    const OptionValue value = option.access.get(newest);
    if (is_said(value) && value != OptionValue(std::string()))
      node.fallback = json_of(option.info, value);
  }
  for (const Json& key : schema.at("inference_keys"))
    inference_keys_.push_back({key.at("path").get<std::string>(), key.at("for").get<std::string>(),
                               key.value("training", "")});
}

DsNode& DsSchema::place(std::string_view path) {
  DsNode* node = &root_;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    const auto same = [&](const DsNode& child) { return child.name == name; };
    auto it = std::find_if(node->children.begin(), node->children.end(), same);
    if (it == node->children.end()) {
      DsNode child;
      child.name = name;
      child.path = node->path.empty() ? child.name : node->path + "." + child.name;
      child.unknown = node->unknown;  // a block within a plain dictionary is one too
      child.source = node->source;
      it = node->children.insert(it, std::move(child));
      node->block = true;
    }
    node = &*it;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return *node;
}

const DsNode* DsSchema::find(std::string_view path) const {
  const DsNode* node = &root_;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    node = node->child(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return node;
}

std::vector<std::string> DsSchema::paths_named(std::string_view name) const {
  std::vector<std::string> found;
  for (const std::string& path : paths_)
    if (path.ends_with(name) &&
        (path.size() == name.size() || path[path.size() - name.size() - 1] == '.'))
      found.push_back(path);
  return found;
}

const DsSchema& ds_schema() {
  static const DsSchema schema(embedded_json("deepspeed/schema.json"));
  return schema;
}

}  // namespace shardplan
