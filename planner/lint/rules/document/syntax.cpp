#include "lint/rules/document/family.h"

namespace shardplan::lint_rules::document {

Rule syntax() {
  return {
      .id = "json.syntax"_rule,
      .severity = Severity::error,
      .title = "The file is not valid JSON",
      .explanation = "No program can read any of it.",
      .source = "RFC 8259; deepspeed/runtime/config.py DeepSpeedConfig.__init__",
      .advice =
          "Correct the text at the place that is shown; a missing or stray comma is the usual "
          "reason.",
  };
}

}  // namespace shardplan::lint_rules::document
