#include "lint/rules/document/family.h"

namespace shardplan::lint_rules::document {

TextRule repeated_key() {
  return {
      .rule =
          {
              .id = "json.repeated-key"_rule,
              .severity = Severity::warning,
              .title = "A key appears twice, and the last counts",
              .explanation =
                  "HF Trainer and accelerate read the file with Python's json, which silently "
                  "takes the last of the two. DeepSpeed itself refuses such a file.",
              .source = "accelerate: utils/deepspeed.py HfDeepSpeedConfig; "
                        "deepspeed/runtime/config_utils.py dict_raise_error_on_duplicate_keys",
              .advice = "Keep one of the two. --fix writes a copy with the last.",
          },
      .check =
          [](const TextSubject& s, const Report& report) {
            if (s.text == DsText::repeated)
              report("", "a key appears twice, and HF Trainer and accelerate take the last",
                     "every key once");
          },
  };
}

}  // namespace shardplan::lint_rules::document
