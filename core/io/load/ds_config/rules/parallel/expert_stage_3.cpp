#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule expert_stage_3() {
  return {
      .rule =
          {
              .id = "ds.expert-stage-3"_rule,
              .severity = Severity::error,
              .title = "Expert parallelism at stage 3 with another split",
              .explanation =
                  "At stage 3 expert parallelism works alone: not with tensor or sequence "
                  "parallelism, ZeRO++ or MiCS.",
              .source = "deepspeed/runtime/engine.py _validate_zero3_moe_compatibility",
              .advice = "Use stage 1 or 2, or switch the other off.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const DsValues& v = s.values;
            if (!v.flag("expert_parallel.enabled") || v.stage() != 3) return;
            const auto refuse = [&](const char* key) {
              report(key, "does not work with expert parallelism at ZeRO stage 3",
                     "stage 1 or 2, or without it");
            };
            if (v.integer("tensor_parallel.autotp_size") > 1) refuse("tensor_parallel.autotp_size");
            if (sequence_ranks(v) > 1) refuse("sequence_parallel_size");
            if (v.flag("zero_optimization.zero_quantized_gradients"))
              refuse("zero_optimization.zero_quantized_gradients");
            if (v.integer("zero_optimization.mics_shard_size") > 0)
              refuse("zero_optimization.mics_shard_size");
            if (v.integer("zero_optimization.zero_hpz_partition_size") > 1)
              refuse("zero_optimization.zero_hpz_partition_size");
            if (v.integer("expert_parallel.expert_tensor_parallel_size") > 1)
              refuse("expert_parallel.expert_tensor_parallel_size");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
