#include "lint/rules/document/family.h"

namespace shardplan::lint_rules::document {

Rule duplicate_key() {
  return {
      .id = "json.duplicate-key"_rule,
      .severity = Severity::error,
      .title = "A key appears twice",
      .explanation =
          "It is unclear which of the two is meant. DeepSpeed raises an error; HF Trainer "
          "silently takes the last.",
      .source = "deepspeed/runtime/config_utils.py dict_raise_error_on_duplicate_keys",
      .advice = "Keep one of the two.",
  };
}

}  // namespace shardplan::lint_rules::document
