#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule autotp_sequence() {
  return {
      .rule =
          {
              .id = "ds.autotp-sequence"_rule,
              .severity = Severity::error,
              .title = "Tensor and sequence parallelism together",
              .explanation = "AutoTP and Ulysses both take the ranks of one group.",
              .source = kTensor,
              .advice = "Choose one of the two.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (tensor_ranks(s.values) > 1 && sequence_ranks(s.values) > 1)
              report("tensor_parallel.autotp_size",
                     "tensor and Ulysses sequence parallelism exclude each other",
                     "one of the two");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
