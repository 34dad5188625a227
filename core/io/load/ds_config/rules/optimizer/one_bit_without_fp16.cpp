#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule one_bit_without_fp16() {
  return {
      .rule =
          {
              .id = "ds.one-bit-without-fp16"_rule,
              .severity = Severity::warning,
              .title = "A 1-bit optimizer without fp16",
              .explanation = "The 1-bit optimizers were written for, and are tested with, fp16.",
              .source = "docs/_tutorials/onebit-adam.md",
              .advice = "Enable fp16.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && optimizer->one_bit() && !s.values.flag("fp16.enabled"))
              report("optimizer.type", "the 1-bit optimizers are tried only with fp16");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
