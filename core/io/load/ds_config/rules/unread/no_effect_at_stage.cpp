#include <fmt/format.h>

#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/unread/family.h"

namespace shardplan::config_rules::unread {
namespace {

Said stages_text(const DsNode& node) {
  return node.stages.size() == 1 ? say("read at stage {}", node.stages.front())
                                 : say("read at stages {}", fmt::join(node.stages, ", "));
}

/// The keys of a block that are given, differ from their default and are not read.
void report_unread(const DsNode& block, const DsValues& values, const Report& report) {
  const int stage = values.stage();
  const auto say_so = [&](const DsNode& node) {
    report(node.path, say("has no effect at ZeRO stage {}: {}", stage,
                          node.effect.empty() ? stages_text(node) : Said(node.effect)));
  };
  for (const DsNode& child : block.children) {
    const Json* given = values.given(child.path);
    if (given == nullptr || given->is_null()) continue;
    if (child.block) {
      if (switched_off(child, values)) continue;
      if (child.acts_at(stage))
        report_unread(child, values, report);
      else
        say_so(child);
    } else if (!child.acts_at(stage) && *given != child.default_at(values.version())) {
      say_so(child);
    }
  }
}

}  // namespace

ConfigRule no_effect_at_stage() {
  return {
      .rule =
          {
              .id = "ds.no-effect-at-stage"_rule,
              .severity = Severity::warning,
              .title = "A key without effect at this ZeRO stage",
              .explanation = "It differs from its default, and nothing reads it at this stage: "
                             "whoever wrote it "
                             "expected something that does not happen.",
              .source = "data/deepspeed/schema.json, from deepspeed/runtime/zero/*.py",
              .advice = "Remove it, or use a stage that reads it.",
              .repair = repair::remove_it,
          },
      .check = [](const ConfigSubject& s,
                  const Report& report) { report_unread(ds_schema().root(), s.values, report); },
  };
}

}  // namespace shardplan::config_rules::unread
