#include "load/ds_config/deprecated.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "load/ds_config/rules/deprecated/family.h"
#include "load/ds_config/values.h"

namespace shardplan {
namespace {

/// The boolean form: true is stage 1 with the bucket size of the top-level key allgather_size
/// (runtime/zero/config.py read_zero_config_deprecated).
void expand_boolean_zero(Json& document) {
  const Json* zero = value_at(document, "zero_optimization");
  if (zero == nullptr || !zero->is_boolean()) return;
  const Json* size = value_at(document, "allgather_size");
  const bool on = zero->get<bool>();
  Json block = Json::object();
  block["stage"] = on ? 1 : 0;
  if (on && size != nullptr && size->is_number()) block["allgather_bucket_size"] = *size;
  document["zero_optimization"] = std::move(block);
}

OldKeyFate move_key(Json& document, const DsNode& old, Json value) {
  const DsDeprecation& deprecation = *old.deprecated;
  if (deprecation.kept) return OldKeyFate::kept;
  remove_value(document, old.path);
  if (deprecation.ignored) return OldKeyFate::ignored;
  if (const Json* replacement = value_at(document, deprecation.replacement))
    return !replacement->is_null() && deprecation.loses ? OldKeyFate::shadowed : OldKeyFate::twice;
  if (!deprecation.when_true.is_null()) {
    if (!value.is_boolean() || !value.get<bool>()) return OldKeyFate::moved;
    value = deprecation.when_true;
  }
  set_value(document, deprecation.replacement, std::move(value));
  return OldKeyFate::moved;
}

/// A second name that pydantic accepts (populate_by_name) is no old spelling: it is moved without a
/// word.
bool move_alias(Json& document, const DsNode& alias, Json value) {
  remove_value(document, alias.path);
  if (value_at(document, alias.alias_of) != nullptr) return false;
  set_value(document, alias.alias_of, std::move(value));
  return true;
}

void walk(Json& document, const DsNode& node, DsFindings& findings) {
  const auto report = [&](OldKeyFate fate) {
    check_rules(config_rules::deprecated::all(), OldKey{node, fate}, findings);
  };
  if (node.deprecated)
    if (const Json* found = value_at(document, node.path)) report(move_key(document, node, *found));
  if (!node.alias_of.empty())
    if (const Json* found = value_at(document, node.path))
      if (!move_alias(document, node, *found)) report(OldKeyFate::alias_twice);
  for (const DsNode& child : node.children) walk(document, child, findings);
}

}  // namespace

void move_deprecated(Json& document, DsFindings& findings) {
  check_rules(config_rules::deprecated::raw(), document, findings);
  expand_boolean_zero(document);
  walk(document, ds_schema().root(), findings);
}

}  // namespace shardplan
