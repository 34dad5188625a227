#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule unmanaged_accumulation() {
  return {
      .rule =
          {
              .id = "ds.unmanaged-accumulation"_rule,
              .severity = Severity::error,
              .title = "managed_gradient_accumulation off where the engine needs it",
              .explanation = "Not with overlap_comm below stage 2, pipelines, DeepCompile or amp.",
              .source = "deepspeed/runtime/engine.py _do_sanity_check",
              .advice = "Remove it.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "managed_gradient_accumulation";
            if (s.values.version() < DeepSpeedVersion{0, 19, 4} || s.values.flag(kKey)) return;
            const auto refuse = [&](const char* what) {
              report(kKey, say("false does not work with {}", what), "true");
            };
            if (s.values.stage() < 2 && s.values.flag("zero_optimization.overlap_comm"))
              refuse("overlap_comm below stage 2");
            if (s.context.pipeline_parallel > 1) refuse("pipeline parallelism");
            if (compiles_deeply(s.values)) refuse("DeepCompile");
            if (s.values.flag("amp.enabled")) refuse("amp");
          },
  };
}

}  // namespace shardplan::config_rules::zero
