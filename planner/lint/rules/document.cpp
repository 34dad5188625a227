// The file as a text.
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr Rule kRules[] = {
    {"json.syntax"_rule, Severity::error, "The file is no JSON",
     "Nothing of the file is read, by nobody.",
     "RFC 8259; deepspeed/runtime/config.py DeepSpeedConfig.__init__",
     "Correct the text at the place that is shown; a missing or stray comma is the usual reason."},
    {"json.comments"_rule, Severity::warning, "The file has comments",
     "DeepSpeed reads its file with hjson, which takes comments. HF Trainer and accelerate read "
     "the "
     "same file with Python's json, which stops at the first one.",
     "deepspeed/runtime/config.py; accelerate: utils/deepspeed.py HfDeepSpeedConfig",
     "Remove the comments, or pass the file to DeepSpeed alone. --fix writes a copy without them."},
    {"json.duplicate-key"_rule, Severity::error, "A key appears twice",
     "Which of the two is meant cannot be known. DeepSpeed raises an error; HF Trainer silently "
     "takes the last.",
     "deepspeed/runtime/config_utils.py dict_raise_error_on_duplicate_keys",
     "Keep one of the two."},
    {"json.too-deep"_rule, Severity::error, "Blocks are nested too deeply",
     "No configuration has more than a few levels; Python's own reader gives up at about a "
     "thousand.",
     "deepspeed/runtime/config.py", "Look for a block that was pasted into itself."},
};

}  // namespace

std::span<const Rule> document_rules() {
  return kRules;
}

}  // namespace shardplan
