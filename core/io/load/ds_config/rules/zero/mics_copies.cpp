#include "load/ds_config/rules/zero/family.h"
#include "load/ds_config/version.h"

namespace shardplan::config_rules::zero {

ConfigRule mics_copies() {
  return {
      .rule =
          {
              .id = "ds.mics-copies"_rule,
              .severity = Severity::warning,
              .title = "MiCS with replicas since 0.19.3",
              .explanation =
                  "Since 0.19.3 stage 3 reduces gradients over the group that each parameter "
                  "names, which under MiCS is the world: a rank is left with a smaller part "
                  "than it updates. Found by reading the source.",
              .source = "deepspeed/runtime/zero/stage3.py _get_param_partition_group, "
                        "partition_parameters.py _convert_to_deepspeed_param",
              .advice = "Train with 0.19.2 or earlier, or shard over all ranks.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            // Since 0.19.3 zero/stage3.py _get_param_partition_group names the parameters' own
            // group: under MiCS still the world.
            constexpr DeepSpeedVersion kGroupsByParameter{0, 19, 3};
            const std::int64_t replicas = mics_replicas(s);
            if (replicas > 1 && s.values.version() >= kGroupsByParameter)
              report(
                  kMics,
                  say("with {} replicas, DeepSpeed {} scatters gradients over all {} ranks and not "
                      "over the {} of a shard group",
                      replicas, to_string(s.values.version()), *s.context.world_size,
                      mics_size(s.values)),
                  "DeepSpeed 0.19.2, or one shard group over all ranks");
          },
  };
}

}  // namespace shardplan::config_rules::zero
