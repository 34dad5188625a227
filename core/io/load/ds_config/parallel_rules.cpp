#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "load/ds_config/rules.h"

namespace shardplan {
namespace {

/// The first version without the assertion in engine.py that stage 3 excludes AutoTP.
constexpr DeepSpeedVersion kAutoTpWithStage3{0, 19, 4};

/// runtime/pipe/engine.py __init__.
void check_pipeline(const DsValues& values, const DsConfigContext& context, DsFindings& findings) {
  if (values.stage() >= 2) {
    const std::string refusal = "a PipelineModule works only with ZeRO stages 0 and 1";
    if (context.pipeline_parallel > 1)
      findings.error("ds.pipeline-stage"_rule, "zero_optimization.stage",
                     say("{}: {}", values.stage(), refusal), "0 or 1");
    else if (values.given("pipeline") != nullptr)
      findings.warning("ds.pipeline-block-stage"_rule, "pipeline", refusal,
                       "zero_optimization.stage 0 or 1");
  }
  if (context.pipeline_parallel > 1 && values.given("zero_optimization.overlap_comm") != nullptr &&
      values.flag("zero_optimization.overlap_comm"))
    findings.warning("ds.pipeline-overlap"_rule, "zero_optimization.overlap_comm",
                     "has no effect: the pipeline engine reduces after its schedule");
}

/// engine.py _configure_tensor_parallel, _apply_autotp_partitioning.
void check_tensor_parallel(const DsValues& values, DsFindings& findings) {
  if (values.given("tensor_parallel") == nullptr) return;
  const std::int64_t ranks = values.integer("tensor_parallel.autotp_size");
  const std::int64_t inner = values.integer("tensor_parallel.tp.tp_size");
  if (ranks == 0) {
    findings.warning("ds.autotp-off"_rule, "tensor_parallel.autotp_size",
                     "tensor parallelism is off: autotp_size is 0 or missing",
                     inner > 1 ? say("autotp_size {}", inner) : Said("a size above 1"));
    return;
  }
  if (inner != 1 && inner != ranks)
    findings.error("ds.autotp-sizes"_rule, "tensor_parallel.tp.tp_size",
                   say("{} differs from autotp_size {}", inner, ranks), say("1 or {}", ranks));
  const auto sequence = values.maybe_integer("sequence_parallel_size").value_or(1);
  if (ranks > 1 && sequence > 1)
    findings.error("ds.autotp-sequence"_rule, "tensor_parallel.autotp_size",
                   "tensor and Ulysses sequence parallelism exclude each other", "one of the two");
  if (ranks > 1 && values.stage() == 3 && values.version() < kAutoTpWithStage3)
    findings.error("ds.autotp-stage-3"_rule, "tensor_parallel.autotp_size",
                   "tensor parallelism was not validated with ZeRO stage 3 and is refused",
                   "zero_optimization.stage 0, 1 or 2");
}

/// module_inject/auto_ep_config.py, engine.py _validate_zero3_moe_compatibility.
void check_expert_parallel(const DsValues& values, const DsConfigContext& context,
                           DsFindings& findings) {
  const Json* coefficient = values.given("expert_parallel.load_balance_coeff");
  if (coefficient != nullptr)
    findings.error("ds.expert-load-balance"_rule, "expert_parallel.load_balance_coeff",
                   say("found {}, which is not supported", coefficient->dump()), "null");
  if (!values.flag("expert_parallel.enabled")) return;
  const std::int64_t experts = values.integer("expert_parallel.autoep_size");
  if (context.world_size && *context.world_size % experts != 0)
    findings.error("ds.expert-ranks"_rule, "expert_parallel.autoep_size",
                   say("{} does not divide the {} ranks", experts, *context.world_size),
                   say("a divisor of {}", *context.world_size));
  if (values.stage() != 3) return;
  const auto refuse = [&](const char* key) {
    findings.error("ds.expert-stage-3"_rule, key,
                   "does not work with expert parallelism at ZeRO stage 3",
                   "stage 1 or 2, or without it");
  };
  if (values.integer("tensor_parallel.autotp_size") > 1) refuse("tensor_parallel.autotp_size");
  if (values.maybe_integer("sequence_parallel_size").value_or(1) > 1)
    refuse("sequence_parallel_size");
  if (values.flag("zero_optimization.zero_quantized_gradients"))
    refuse("zero_optimization.zero_quantized_gradients");
  if (values.integer("zero_optimization.mics_shard_size") > 0)
    refuse("zero_optimization.mics_shard_size");
  if (values.integer("zero_optimization.zero_hpz_partition_size") > 1)
    refuse("zero_optimization.zero_hpz_partition_size");
  if (values.integer("expert_parallel.expert_tensor_parallel_size") > 1)
    refuse("expert_parallel.expert_tensor_parallel_size");
}

/// activation_checkpointing/checkpointing.py _configure_using_config_file, configure.
void check_activation_checkpointing(const DsValues& values, DsFindings& findings) {
  constexpr const char* kContiguous = "activation_checkpointing.contiguous_memory_optimization";
  if (!values.flag(kContiguous)) return;
  if (!values.flag("activation_checkpointing.partition_activations"))
    findings.error("ds.contiguous-without-partition"_rule, kContiguous,
                   "works only with partitioned activations",
                   "activation_checkpointing.partition_activations true");
  if (!values.maybe_integer("activation_checkpointing.number_checkpoints"))
    findings.error("ds.contiguous-without-number"_rule, kContiguous,
                   "needs the number of checkpoints",
                   "activation_checkpointing.number_checkpoints");
}

}  // namespace

void check_parallel_rules(const DsValues& values, const DsConfigContext& context,
                          DsFindings& findings) {
  check_pipeline(values, context, findings);
  check_tensor_parallel(values, findings);
  check_expert_parallel(values, context, findings);
  check_activation_checkpointing(values, findings);
  const auto vocabulary = values.maybe_integer("vocabulary_size");
  if (vocabulary && *vocabulary % 8 != 0)
    findings.warning("ds.vocabulary-size"_rule, "vocabulary_size",
                     say("{} is no multiple of 8, which slows tensor cores", *vocabulary),
                     "a multiple of 8");
}

}  // namespace shardplan
