#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule vocabulary_size() {
  return {
      .rule =
          {
              .id = "ds.vocabulary-size"_rule,
              .severity = Severity::warning,
              .title = "A vocabulary that is not a multiple of 8",
              .explanation = "The head's matrix product falls off the tensor cores' fast path.",
              .source = "deepspeed/runtime/config.py _do_warning_check",
              .advice = "Pad the vocabulary.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto vocabulary = s.values.maybe_integer("vocabulary_size");
            if (vocabulary && *vocabulary % 8 != 0)
              report("vocabulary_size",
                     say("{} is not a multiple of 8, which slows tensor cores", *vocabulary),
                     "a multiple of 8");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
