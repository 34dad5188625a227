#include "base/format.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {
namespace {

std::vector<Edit> take_value(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, Json::parse(finding.expected.text))};
}

}  // namespace

KeyCostRule better_value() {
  return {
      .rule =
          {
              .id = "memory.better-value"_rule,
              .severity = Severity::note,
              .title = "Another value needs less memory at the same pace",
              .explanation = "Both were estimated for this model and machine.",
              .source = kEstimate,
              .advice = "Take the value that is shown.",
              .repair = take_value,
          },
      .check =
          [](const KeyCost& cost, const Report& report) {
            if (!cost.better) return;
            const std::string better = cost.better->value.dump();
            const std::string bytes = format_bytes(-cost.better->change.gpu);
            report(cost.path,
                   cost.given ? say("{} saves {} of each GPU", better, bytes)
                              : say("{} by default; {} saves {} of each GPU", cost.value.dump(),
                                    better, bytes),
                   better);
          },
  };
}

}  // namespace shardplan::lint_rules::memory
