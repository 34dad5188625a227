#include "load/ds_config/deprecated.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "load/ds_config/schema.h"
#include "load/ds_config/values.h"

namespace shardplan {
namespace {

/// The boolean form: true is stage 1 with the bucket size of the top-level key allgather_size
/// (runtime/zero/config.py read_zero_config_deprecated).
void expand_boolean_zero(Json& document, DsFindings& findings) {
  const Json* zero = value_at(document, "zero_optimization");
  const Json* size = value_at(document, "allgather_size");
  const bool boolean = zero != nullptr && zero->is_boolean();
  if (size != nullptr && !boolean) {
    findings.warning("ds.allgather-size-unread"_rule, "allgather_size",
                     "is read only beside \"zero_optimization\": true",
                     "zero_optimization.allgather_bucket_size");
  }
  if (!boolean) return;
  const bool on = zero->get<bool>();
  findings.warning("ds.boolean-zero"_rule, "zero_optimization",
                   say("the boolean form is deprecated; {} means stage {}", on, on ? 1 : 0),
                   say("{{\"stage\": {}}}", on ? 1 : 0));
  Json block = Json::object();
  block["stage"] = on ? 1 : 0;
  if (on && size != nullptr && size->is_number()) block["allgather_bucket_size"] = *size;
  document["zero_optimization"] = std::move(block);
}

void move_key(Json& document, const DsNode& old, DsFindings& findings) {
  const DsDeprecation& deprecation = *old.deprecated;
  const Json* found = value_at(document, old.path);
  if (found == nullptr) return;
  if (deprecation.kept) {
    if (old.path != "allgather_size")
      findings.warning("ds.old-block"_rule, old.path, "an old block that is still read",
                       deprecation.replacement);
    return;
  }
  if (deprecation.ignored) {
    findings.warning("ds.deprecated-ignored"_rule, old.path, "deprecated and without effect",
                     deprecation.advice);
    remove_value(document, old.path);
    return;
  }
  Json value = *found;
  const Json* replacement = value_at(document, deprecation.replacement);
  remove_value(document, old.path);
  if (replacement != nullptr && !replacement->is_null() && deprecation.loses) {
    findings.warning("ds.deprecated-shadowed"_rule, old.path,
                     say("ignored, because '{}' is there too", deprecation.replacement));
    return;
  }
  if (replacement != nullptr) {
    findings.error(
        "ds.deprecated-twice"_rule, old.path,
        say("deprecated, and given together with its replacement '{}'", deprecation.replacement),
        "only the replacement");
    return;
  }
  findings.warning("ds.deprecated-key"_rule, old.path, "deprecated",
                   say("'{}'", deprecation.replacement));
  if (!deprecation.when_true.is_null()) {
    if (!value.is_boolean() || !value.get<bool>()) return;
    value = deprecation.when_true;
  }
  set_value(document, deprecation.replacement, std::move(value));
}

/// A second name that pydantic accepts (populate_by_name).
void move_alias(Json& document, const DsNode& alias, DsFindings& findings) {
  const Json* found = value_at(document, alias.path);
  if (found == nullptr) return;
  Json value = *found;
  remove_value(document, alias.path);
  if (value_at(document, alias.alias_of) != nullptr) {
    findings.error("ds.alias-twice"_rule, alias.path,
                   say("another name of '{}', which is there too", alias.alias_of),
                   "one of the two");
    return;
  }
  set_value(document, alias.alias_of, std::move(value));
}

void walk(Json& document, const DsNode& node, DsFindings& findings) {
  if (node.deprecated) move_key(document, node, findings);
  if (!node.alias_of.empty()) move_alias(document, node, findings);
  for (const DsNode& child : node.children) walk(document, child, findings);
}

}  // namespace

void move_deprecated(Json& document, DsFindings& findings) {
  expand_boolean_zero(document, findings);
  walk(document, ds_schema().root(), findings);
}

}  // namespace shardplan
