#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

OverflowRule number_too_large() {
  return {
      .rule =
          {
              .id = "ds.number-too-large"_rule,
              .severity = Severity::error,
              .title = "A product of the file's numbers exceeds 64 bits",
              .explanation =
                  "Batch sizes or buckets multiply to a number that no machine can hold.",
              .source = "deepspeed/runtime/config.py _set_batch_related_parameters",
              .advice = "Look for an extra zero.",
          },
      .check =
          // Of all sums over a file's numbers only that of the batch can be so large.
      [](const OverflowError& error, const Report& report) {
        report("train_batch_size", error.what());
      },
  };
}

}  // namespace shardplan::config_rules::keys
