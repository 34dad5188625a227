#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule autotp_sizes() {
  return {
      .rule =
          {
              .id = "ds.autotp-sizes"_rule,
              .severity = Severity::error,
              .title = "Two tensor-parallel sizes",
              .explanation = "tensor_parallel.tp.tp_size must be 1 or equal to autotp_size.",
              .source = kTensor,
              .advice = "Write autotp_size only.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const std::int64_t ranks = tensor_ranks(s.values);
            const std::int64_t inner = s.values.integer("tensor_parallel.tp.tp_size");
            if (ranks != 0 && inner != 1 && inner != ranks)
              report("tensor_parallel.tp.tp_size",
                     say("{} differs from autotp_size {}", inner, ranks), say("1 or {}", ranks));
          },
  };
}

}  // namespace shardplan::config_rules::parallel
