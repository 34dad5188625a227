#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

Rule yaml_syntax() {
  return {
      .id = "yaml.syntax"_rule,
      .severity = Severity::error,
      .title = "accelerate's file is not valid YAML",
      .explanation = "Nothing of it is read.",
      .source = "YAML 1.1, as PyYAML's safe_load reads it",
      .advice =
          "Correct the text at the place that is shown; tabs and unquoted colons are the usual "
          "reasons.",
  };
}

}  // namespace shardplan::lint_rules::accelerate
