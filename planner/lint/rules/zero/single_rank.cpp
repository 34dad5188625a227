#include "lint/rules/zero/family.h"

namespace shardplan::lint_rules::zero {
namespace {

bool offloads_anything(const DsValues& v) {
  for (const char* device :
       {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"})
    if (v.maybe_text(device).value_or("none") != "none") return true;
  return false;
}

}  // namespace

LintRule single_rank() {
  return {
      .rule =
          {
              .id = "zero.single-rank"_rule,
              .severity = Severity::warning,
              .title = "ZeRO on a single rank",
              .explanation =
                  "ZeRO divides states by the data-parallel ranks; with one there is nothing "
                  "to divide, and buckets and flat copies are added.",
              .source = "deepspeed/runtime/zero/stage_1_and_2.py",
              .advice = "Use stage 0, or offload.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.context.world_size == 1 && s.values.stage() > 0 && !offloads_anything(s.values))
              report("zero_optimization.stage",
                     say("stage {} on one GPU shards nothing", s.values.stage()),
                     "0, or offload_optimizer");
          },
  };
}

}  // namespace shardplan::lint_rules::zero
