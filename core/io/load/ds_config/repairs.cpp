#include "load/ds_config/repairs.h"

#include "load/ds_config/coerce.h"
#include "load/ds_config/schema.h"
#include "load/ds_config/values.h"

namespace shardplan::repair {
namespace {

/// "zero_optimization." of "zero_optimization.stage"; "" at the top level.
std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot + 1);
}

}  // namespace

std::vector<Edit> remove_it(const Diagnostic& finding, const Json&) {
  return {remove_key(finding.key)};
}

std::vector<Edit> rename_to_nearest(const Diagnostic& finding, const Json& document) {
  if (finding.nearest.empty()) return {};
  const std::string block = parent_of(finding.key), own = block + finding.nearest;
  const bool elsewhere =
      finding.nearest.find('.') != std::string::npos || ds_schema().find(own) == nullptr;
  const std::string to = elsewhere ? finding.nearest : own;
  const std::string other = parent_of(to);
  const bool has_block =
      other.empty() || value_at(document, other.substr(0, other.size() - 1)) != nullptr;
  // fp16's loss scale under bf16 asks for no block of fp16: it goes.
  if (!has_block) return {remove_key(finding.key)};
  if (value_at(document, to) != nullptr) return {};  // two answers: a person must choose
  return {rename_key(finding.key, to)};
}

std::vector<Edit> set_nearest(const Diagnostic& finding, const Json&) {
  if (finding.nearest.empty()) return {};
  return {set_key(finding.key, finding.nearest)};
}

std::vector<Edit> set_auto(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, "auto")};
}

std::vector<Edit> set_as_read(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  const DsNode* node = ds_schema().find(finding.key);
  if (value == nullptr || node == nullptr) return {};
  const Coerced read = coerce(*value, *node, true);
  return read.value ? std::vector{set_key(finding.key, *read.value)} : std::vector<Edit>{};
}

std::vector<Edit> move_deprecated_key(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  const DsNode* node = ds_schema().find(finding.key);
  if (value == nullptr || node == nullptr || !node->deprecated) return {};
  const DsDeprecation& deprecation = *node->deprecated;
  if (deprecation.when_true.is_null()) return {rename_key(finding.key, deprecation.replacement)};
  std::vector<Edit> edits{remove_key(finding.key)};
  if (value->is_boolean() && value->get<bool>())
    edits.push_back(set_key(deprecation.replacement, deprecation.when_true));
  return edits;
}

}  // namespace shardplan::repair
