#include "lint/rules/document/family.h"

namespace shardplan::lint_rules::document {

Rule too_deep() {
  return {
      .id = "json.too-deep"_rule,
      .severity = Severity::error,
      .title = "Blocks are nested too deeply",
      .explanation =
          "No configuration has more than a few levels; Python's own reader gives up at about a "
          "thousand.",
      .source = "deepspeed/runtime/config.py",
      .advice = "Look for a block that was pasted into itself.",
  };
}

}  // namespace shardplan::lint_rules::document
