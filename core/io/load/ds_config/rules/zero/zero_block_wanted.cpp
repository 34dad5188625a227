#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule zero_block_wanted() {
  return {
      .rule =
          {
              .id = "ds.zero-block-wanted"_rule,
              .severity = Severity::warning,
              .title = "\"auto\", but no zero_optimization block",
              .explanation =
                  "HF Trainer and accelerate fill in \"auto\", and refuse a ds_config without this "
                  "block. A program of another kind may fill the file in itself.",
              .source = "accelerate: utils/dataclasses.py DeepSpeedPlugin",
              .advice = "Add a block, if only with stage 0.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.context.resolver_guessed && !s.autos.empty() &&
                s.values.given("zero_optimization") == nullptr)
              report("zero_optimization",
                     "not in the file, where HF Trainer and accelerate want it",
                     "a block, if only with stage 0");
          },
  };
}

}  // namespace shardplan::config_rules::zero
