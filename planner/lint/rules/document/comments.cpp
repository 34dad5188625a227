#include "json/document.h"
#include "lint/rules/document/family.h"

namespace shardplan::lint_rules::document {
namespace {

bool can_be_read(const SourceText& source, JsonComments comments) {
  try {
    parse_json(source.text, source.file, comments);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

TextRule comments() {
  return {
      .rule =
          {
              .id = "json.comments"_rule,
              .severity = Severity::warning,
              .title = "The file has comments",
              .explanation =
                  "DeepSpeed reads its file with hjson, which takes comments. HF Trainer and "
                  "accelerate read the same file with Python's json, which stops at the first one.",
              .source =
                  "deepspeed/runtime/config.py; accelerate: utils/deepspeed.py HfDeepSpeedConfig",
              .advice =
                  "Remove the comments, or pass the file to DeepSpeed alone. --fix writes a copy "
                  "without them.",
          },
      .check =
          [](const SourceText& source, const Report& report) {
            if (!can_be_read(source, JsonComments::refused) &&
                can_be_read(source, JsonComments::skipped))
              report("", "comments, which HF Trainer and accelerate do not read", "plain JSON");
          },
  };
}

}  // namespace shardplan::lint_rules::document
