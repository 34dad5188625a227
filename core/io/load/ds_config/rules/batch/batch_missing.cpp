#include "load/ds_config/rules/batch/family.h"

namespace shardplan::config_rules::batch {

ConfigRule batch_missing() {
  return {
      .rule =
          {
              .id = "ds.batch-missing"_rule,
              .severity = Severity::error,
              .title = "No batch size",
              .explanation =
                  "Either train_batch_size or train_micro_batch_size_per_gpu must be given. Some "
                  "programs put it into the file's dictionary themselves (PyTorch Lightning, "
                  "DeepSpeed-Chat).",
              .source = kBatch,
              .advice = "Set train_micro_batch_size_per_gpu; or say --micro-batch, where the "
                        "program gives it.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (is_elastic(s)) return;
            const BatchTriangle given = given_batch(s.values, s.context);
            if (!given.train_batch && !given.micro_batch)
              report(batch_key::kMicro, "neither the batch size nor the micro-batch size is given",
                     say("'{}' or '{}'; --micro-batch, where the program gives it",
                         batch_key::kTrain, batch_key::kMicro));
          },
  };
}

}  // namespace shardplan::config_rules::batch
