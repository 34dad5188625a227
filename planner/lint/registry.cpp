#include "lint/registry.h"

#include <array>

#include "lint/rules/accelerate/family.h"
#include "lint/rules/autos/family.h"
#include "lint/rules/degrees/family.h"
#include "lint/rules/document/family.h"
#include "lint/rules/host/family.h"
#include "lint/rules/machine/family.h"
#include "lint/rules/memory/family.h"
#include "lint/rules/nvme/family.h"
#include "lint/rules/precision/family.h"
#include "lint/rules/time/family.h"
#include "lint/rules/trainer/family.h"
#include "lint/rules/versions/family.h"
#include "lint/rules/zero/family.h"
#include "load/ds_config/rules/autos/family.h"
#include "load/ds_config/rules/batch/family.h"
#include "load/ds_config/rules/deprecated/family.h"
#include "load/ds_config/rules/keys/family.h"
#include "load/ds_config/rules/optimizer/family.h"
#include "load/ds_config/rules/parallel/family.h"
#include "load/ds_config/rules/precision/family.h"
#include "load/ds_config/rules/trainer/mismatch.h"
#include "load/ds_config/rules/unread/family.h"
#include "load/ds_config/rules/zero/family.h"

namespace shardplan {

std::span<const RuleFamily> rule_families() {
  namespace config = config_rules;
  namespace own = lint_rules;
  static const std::array kFamilies{
      RuleFamily{"The file", own::document::listed()},
      RuleFamily{"Keys and values", config::keys::listed()},
      RuleFamily{"Old spellings", config::deprecated::listed()},
      RuleFamily{"\"auto\"", rules_in(config::autos::all(), own::autos::all()), own::autos::all()},
      RuleFamily{"The batch", config::batch::listed()},
      RuleFamily{"Precision", rules_in(config::precision::all(), own::precision::all()),
                 own::precision::all()},
      RuleFamily{"ZeRO", rules_in(config::zero::all(), own::zero::all()), own::zero::all()},
      RuleFamily{"Optimizer and scheduler", config::optimizer::listed()},
      RuleFamily{"Parallelism and checkpointing", config::parallel::listed()},
      RuleFamily{"Degrees of parallelism", own::degrees::listed(), own::degrees::all()},
      RuleFamily{"Keys without effect", config::unread::listed()},
      RuleFamily{"Versions", own::versions::listed(), own::versions::all()},
      RuleFamily{"NVMe", own::nvme::listed(), own::nvme::all()},
      RuleFamily{
          "HF TrainingArguments",
          rules_in(config::trainer::mismatches(), own::trainer::of_file(), own::trainer::all()),
          own::trainer::all()},
      RuleFamily{"accelerate", own::accelerate::listed(), own::accelerate::all()},
      RuleFamily{"Model and machine", own::machine::listed(), own::machine::all()},
      RuleFamily{"GPU memory", own::memory::listed(), {}, own::memory::priced()},
      RuleFamily{"Host memory and checkpoints", own::host::listed(), own::host::all()},
      RuleFamily{"Time", own::time::listed(), own::time::all(), own::time::priced()},
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
