#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule inference_key_ignored() {
  return {
      .rule =
          {
              .id = "ds.inference-key-ignored"_rule,
              .severity = Severity::warning,
              .title = "A key of deepspeed.init_inference()",
              .explanation = "deepspeed.initialize() never reads it.",
              .source = "deepspeed/inference/config.py",
              .advice = "Remove it, or pass it to init_inference().",
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::inference && key.unknown != DsUnknown::refused)
              report(key.path, "a key of deepspeed.init_inference(), which training ignores", "",
                     key.inference->training);
          },
  };
}

}  // namespace shardplan::config_rules::keys
