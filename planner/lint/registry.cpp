#include "lint/registry.h"

#include <array>

#include "lint/rules/families.h"

namespace shardplan {

std::span<const RuleFamily> rule_families() {
  static const std::array kFamilies{
      RuleFamily{"The file", document_rules()},
      RuleFamily{"Keys and values", key_rules()},
      RuleFamily{"Old spellings", deprecated_rules()},
      RuleFamily{"\"auto\"", auto_rules(), check_auto},
      RuleFamily{"The batch", batch_rules()},
      RuleFamily{"Precision", precision_rules(), check_precision},
      RuleFamily{"ZeRO", zero_rules(), check_zero},
      RuleFamily{"Optimizer and scheduler", optimizer_rules()},
      RuleFamily{"Parallelism and checkpointing", parallel_rules()},
      RuleFamily{"Degrees of parallelism", degree_rules(), check_degrees},
      RuleFamily{"Keys without effect", unread_rules()},
      RuleFamily{"Versions", version_rules(), check_versions},
      RuleFamily{"NVMe", nvme_rules(), check_nvme},
      RuleFamily{"HF TrainingArguments", trainer_rules(), check_trainer},
      RuleFamily{"accelerate", accelerate_rules(), check_accelerate},
      RuleFamily{"Model and machine", machine_rules(), check_machine},
      RuleFamily{"GPU memory", memory_rules(), check_memory},
      RuleFamily{"Host memory and checkpoints", host_rules(), check_host},
      RuleFamily{"Time", time_rules(), check_time},
  };
  return kFamilies;
}

const Rule* find_rule(std::string_view id) {
  for (const RuleFamily& family : rule_families())
    for (const Rule& rule : family.rules)
      if (rule.id.text() == id) return &rule;
  return nullptr;
}

const Rule* find_rule(RuleId id) {
  return find_rule(id.text());
}

}  // namespace shardplan
