#include "json/reader.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule not_an_object() {
  return {
      .rule =
          {
              .id = "ds.not-an-object"_rule,
              .severity = Severity::error,
              .title = "A block that is not an object",
              .explanation = "DeepSpeed looks keys up in it and fails.",
              .source = kTyped,
              .advice = "Write { } around the block's keys.",
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::not_an_object)
              report(key.path, say("found {}", describe(key.value)), "an object");
          },
  };
}

}  // namespace shardplan::config_rules::keys
