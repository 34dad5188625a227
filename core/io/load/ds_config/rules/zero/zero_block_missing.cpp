#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {
namespace {

std::vector<Edit> empty_block(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, Json{{"stage", 0}})};
}

}  // namespace

ConfigRule zero_block_missing() {
  return {
      .rule =
          {
              .id = "ds.zero-block-missing"_rule,
              .severity = Severity::error,
              .title = "No zero_optimization block",
              .explanation =
                  "accelerate, and HF Trainer through it, refuse a ds_config without one.",
              .source = "accelerate: utils/dataclasses.py DeepSpeedPlugin",
              .advice = "Add a block, if only with stage 0.",
              .repair = empty_block,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            // accelerate: utils/dataclasses.py DeepSpeedPlugin, which HF Trainer goes through as
            // well.
            if (s.context.auto_resolver != AutoResolver::none && !s.context.resolver_guessed &&
                s.values.given("zero_optimization") == nullptr)
              report("zero_optimization",
                     "accelerate and HF Trainer refuse a file without this block",
                     "a block, if only with stage 0");
          },
  };
}

}  // namespace shardplan::config_rules::zero
