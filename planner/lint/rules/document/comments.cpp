#include "lint/rules/document/family.h"

namespace shardplan::lint_rules::document {

TextRule comments() {
  return {
      .rule =
          {
              .id = "json.comments"_rule,
              .severity = Severity::warning,
              .title = "The file has comments, or commas that JSON does not allow",
              .explanation =
                  "DeepSpeed reads its file with hjson, which takes comments, a comma too many or "
                  "too few, and words without quotes. HF Trainer and accelerate read the same file "
                  "with Python's json, which stops at the first one.",
              .source =
                  "deepspeed/runtime/config.py; accelerate: utils/deepspeed.py HfDeepSpeedConfig",
              .advice =
                  "Make it plain JSON, or pass the file to DeepSpeed alone. --fix writes a copy in "
                  "plain JSON.",
          },
      .check =
          [](const TextSubject& s, const Report& report) {
            if (s.text == DsText::hjson)
              report("", "not plain JSON, which HF Trainer and accelerate need", "plain JSON");
          },
  };
}

}  // namespace shardplan::lint_rules::document
