#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule autotp_off() {
  return {
      .rule =
          {
              .id = "ds.autotp-off"_rule,
              .severity = Severity::warning,
              .title = "A tensor_parallel block that is off",
              .explanation = "autotp_size is 0 or missing, so every rank holds whole layers.",
              .source = kTensor,
              .advice = "Set tensor_parallel.autotp_size, or remove the block.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.given("tensor_parallel") == nullptr || tensor_ranks(s.values) != 0) return;
            const std::int64_t inner = s.values.integer("tensor_parallel.tp.tp_size");
            report("tensor_parallel.autotp_size",
                   "tensor parallelism is off: autotp_size is 0 or missing",
                   inner > 1 ? say("autotp_size {}", inner) : Said("a size above 1"));
          },
  };
}

}  // namespace shardplan::config_rules::parallel
