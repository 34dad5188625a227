#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule inference_key() {
  return {
      .rule =
          {
              .id = "ds.inference-key"_rule,
              .severity = Severity::error,
              .title = "A key of deepspeed.init_inference() in a typed block",
              .explanation = "Training's block of that name has other keys and refuses this one.",
              .source =
                  "deepspeed/inference/config.py, deepspeed/runtime/tensor_parallel/config.py",
              .advice = "Use the key of training, or pass this one to init_inference().",
              .repair = repair::rename_to_nearest,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::inference && key.unknown == DsUnknown::refused)
              report(key.path, "a key of deepspeed.init_inference(), which training refuses", "",
                     key.inference->training);
          },
  };
}

}  // namespace shardplan::config_rules::keys
