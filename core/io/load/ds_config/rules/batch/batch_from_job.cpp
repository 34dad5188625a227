#include "load/ds_config/rules/batch/family.h"

namespace shardplan::config_rules::batch {

ConfigRule batch_from_job() {
  return {
      .rule =
          {
              .id = "ds.batch-from-job"_rule,
              .severity = Severity::note,
              .title = "The batch comes from the command line",
              .explanation =
                  "The file has no batch key; DeepSpeed itself would refuse the file as it is.",
              .source = kBatch,
              .advice = "Write train_micro_batch_size_per_gpu into the file.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (!is_elastic(s) && !has_batch_key(s.values) && s.context.micro_batch)
              report(batch_key::kMicro, say("not in the file: the job's micro-batch of {} is taken",
                                            *s.context.micro_batch));
          },
  };
}

}  // namespace shardplan::config_rules::batch
