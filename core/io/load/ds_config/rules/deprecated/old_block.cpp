#include "load/ds_config/rules/deprecated/family.h"

namespace shardplan::config_rules::deprecated {

OldKeyRule old_block() {
  return {
      .rule =
          {
              .id = "ds.old-block"_rule,
              .severity = Severity::warning,
              .title = "An old block that is still read",
              .explanation =
                  "A newer block does the same and more; the old one is kept for old programs.",
              .source =
                  "deepspeed/runtime/data_pipeline/config.py, deepspeed/compression/config.py",
              .advice = "Move to the block that is shown when the program allows it.",
          },
      .check =
          [](const OldKey& key, const Report& report) {
            // allgather_size is read beside the boolean form of ZeRO, which has rules of its own.
            if (key.fate == OldKeyFate::kept && key.node.path != "allgather_size")
              report(key.node.path, "an old block that is still read",
                     key.node.deprecated->replacement);
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
