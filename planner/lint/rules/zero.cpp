// zero_optimization: reduction, offload, shard groups, DeepCompile.
#include <fmt/format.h>

#include "lint/repairs.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kInit = "deepspeed/runtime/zero/stage_1_and_2.py and stage3.py __init__";
constexpr std::string_view kGroups =
    "deepspeed/utils/groups.py _create_zero_param_parallel_group, deepspeed/runtime/zero/mics.py";
constexpr std::string_view kCompile = "deepspeed/compile/init_z3.py, deepspeed/runtime/engine.py";

constexpr const char* kHpz = "zero_optimization.zero_hpz_partition_size";
constexpr const char* kHierarchical = "zero_optimization.mics_hierarchical_params_gather";
constexpr const char* kQuantized = "zero_optimization.zero_quantized_gradients";

std::vector<Edit> to_cpu(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, "cpu")};
}
std::vector<Edit> to_mean(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, "mean")};
}
std::vector<Edit> four_buffers(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, 4)};
}
std::vector<Edit> empty_block(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, Json{{"stage", 0}})};
}
std::vector<Edit> make_even(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  if (value == nullptr || !value->is_number()) return {};
  return {set_key(finding.key, integer_of(*value) - 1)};
}

constexpr Rule kRules[] = {
    {"ds.predivide-with-reduce-scatter"_rule, Severity::error,
     "gradient_predivide_factor with reduce_scatter",
     "At stages 2 and 3 reduce_scatter averages by itself and asserts a factor of 1.", kInit,
     "Remove the factor, or set reduce_scatter to false."},
    {"ds.prescale-with-reduce-scatter"_rule, Severity::error,
     "prescale_gradients with reduce_scatter",
     "At stages 2 and 3 reduce_scatter asserts that gradients are not scaled before.", kInit,
     "Remove it, or set reduce_scatter to false."},
    {"ds.sum-reduction"_rule, Severity::error,
     "gradient_allreduce_op sum where it is not supported",
     "Not at stage 3, and not with ZenFlow or DeepCompile.",
     "deepspeed/runtime/config.py _do_error_check", "Use mean.", to_mean},
    {"ds.odd-allgather-bucket"_rule, Severity::error, "An odd allgather_bucket_size",
     "The bucket is split in two and must be even.", "deepspeed/runtime/zero/stage_1_and_2.py",
     "Use an even number of elements.", make_even},
    {"ds.quantized-gradients-reduction"_rule, Severity::error,
     "Quantized gradients without reduce_scatter",
     "zero_quantized_gradients replaces the reduce-scatter and needs it on.",
     "deepspeed/runtime/zero/stage3.py", "Set reduce_scatter to true."},
    {"ds.partial-offload-stage"_rule, Severity::error,
     "A part of the optimizer offloaded below stage 3",
     "offload_optimizer.ratio below 1 is implemented at stage 3 only.",
     "deepspeed/runtime/zero/config.py offload_ratio_check", "Use 1.0, or stage 3."},
    {"ds.nvme-below-stage-3"_rule, Severity::warning, "The optimizer on NVMe below stage 3",
     "Stages 1 and 2 keep the states in host memory: the NVMe stays empty and the host fills up.",
     "deepspeed/runtime/zero/stage_1_and_2.py", "Use stage 3, or plan for the host memory.",
     to_cpu},
    {"ds.nvme-path-missing"_rule, Severity::error, "Offload to NVMe without a path",
     "The swapper joins a folder to nvme_path and fails without one.",
     "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py",
     "Set nvme_path to a folder on a local NVMe device."},
    {"ds.nvme-buffer-count"_rule, Severity::warning, "Too few NVMe buffers for Adam",
     "One sub-group's parameter, gradient and two moments are in flight together.",
     "deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py", "Use at least 4.",
     four_buffers},
    {"ds.hpz-ranks"_rule, Severity::error, "zero_hpz_partition_size does not divide the ranks",
     "The secondary shards need groups of equal size.", kGroups, "Choose a divisor of the ranks."},
    {"ds.hpz-nvme"_rule, Severity::error, "hpZ with parameters on NVMe",
     "Secondary shards are allocated on the device that parameters are offloaded to, and there is "
     "none of that name.",
     "deepspeed/runtime/zero/partition_parameters.py _partition_param_sec",
     "Offload parameters to the host, or not at all."},
    {"zero.hpz-across-nodes"_rule, Severity::warning, "Secondary shards that cross a node",
     "hpZ keeps a second copy of the shards so that gathers stay within a node; groups larger than "
     "a "
     "node pay for the copy and use the network all the same.",
     "docs/_tutorials/zeropp.md", "Use the number of GPUs in a node."},
    {"ds.quantized-gradients-type"_rule, Severity::warning, "Quantized gradients that are not fp16",
     "The kernel that packs gradients to 4 bits reads fp16, without a look at their type.",
     "csrc/quantization/pt_binding.cpp ds_swizzle_quant, swizzled_quantize.cu",
     "Train in fp16, or set communication_data_type to fp16."},
    {"zero.quantized-gradients-one-node"_rule, Severity::warning,
     "Quantized gradients within one node",
     "The quantized reduction runs between nodes; on one node gradients go in full precision.",
     "deepspeed/runtime/comm/coalesced_collectives.py all_to_all_quant_reduce",
     "Remove it on a single node.", repair::remove_it},
    {"ds.mics-ranks"_rule, Severity::error, "mics_shard_size does not divide the ranks",
     "Shard groups have equal sizes.", kGroups, "Choose a divisor of the ranks."},
    {"ds.mics-copies"_rule, Severity::warning, "MiCS with copies since 0.19.3",
     "Since 0.19.3 stage 3 reduces gradients over the group that each parameter names, which under "
     "MiCS is the world: a rank is left with a smaller part than it updates. Found by reading the "
     "source.",
     "deepspeed/runtime/zero/stage3.py _get_param_partition_group, partition_parameters.py "
     "_convert_to_deepspeed_param",
     "Train with 0.19.2 or earlier, or shard over all ranks."},
    {"ds.mics-ignores"_rule, Severity::warning, "ZeRO++ beside MiCS",
     "MiCS gathers and reduces in its own way: nothing is quantized, and hpZ's secondary shards "
     "are made and never read.",
     "deepspeed/runtime/zero/mics.py MiCS_Init, deepspeed/runtime/engine.py "
     "_return_mics_optimizer",
     "Keep one of the two.", repair::remove_it},
    {"zero.mics-hierarchical"_rule, Severity::error,
     "Hierarchical gathers of a shard group within a node",
     "mics_hierarchical_params_gather goes between nodes first, and asserts that a shard group "
     "spans several whole ones.",
     "deepspeed/runtime/zero/mics_utils.py create_mics_comm_groups",
     "Remove it, or shard over several nodes.", repair::remove_it},
    {"ds.mics-offload"_rule, Severity::error, "MiCS replicas with optimizer offload",
     "The replicas' all-reduce runs on GPU shards only.", "deepspeed/runtime/zero/mics.py",
     "Do not offload, or shard over all ranks."},
    {"zero.single-rank"_rule, Severity::warning, "ZeRO on a single rank",
     "ZeRO divides states by the data-parallel ranks; with one there is nothing to divide, and "
     "buckets and flat copies come on top.",
     "deepspeed/runtime/zero/stage_1_and_2.py", "Use stage 0, or offload."},
    {"ds.zero-block-missing"_rule, Severity::error, "No zero_optimization block",
     "accelerate, and HF Trainer through it, refuse a ds_config without one.",
     "accelerate: utils/dataclasses.py DeepSpeedPlugin", "Add a block, if only with stage 0.",
     empty_block},
    {"ds.legacy-stage1"_rule, Severity::error, "legacy_stage1", "The old stage 1 was removed.",
     "deepspeed/runtime/engine.py", "Remove it.", repair::remove_it},
    {"ds.elastic-checkpoint"_rule, Severity::warning, "elastic_checkpoint at stage 3",
     "No longer supported; universal checkpoints took its place.",
     "deepspeed/runtime/zero/config.py elastic_checkpoint_deprecated",
     "Remove it; use checkpoint.load_universal.", repair::remove_it},
    {"ds.deepcompile-without-zero"_rule, Severity::warning, "DeepCompile without ZeRO",
     "It falls back to plain torch.compile.", kCompile, "Use stage 1, 2 or 3, or remove it."},
    {"ds.deepcompile-offloads"_rule, Severity::error, "DeepCompile offloads activations and states",
     "The passes exclude each other.", kCompile, "Keep one of them."},
    {"ds.deepcompile-two-offloads"_rule, Severity::error,
     "DeepCompile offloads states and parameters", "The passes exclude each other.", kCompile,
     "Keep one of them."},
    {"ds.deepcompile-offload-optimizer"_rule, Severity::error,
     "compile.offload_opt_states beside offload_optimizer",
     "The states would be moved by two owners.", kCompile, "Keep one of them."},
    {"ds.unmanaged-accumulation"_rule, Severity::error,
     "managed_gradient_accumulation off where the engine needs it",
     "Not with overlap_comm below stage 2, pipelines, DeepCompile or amp.",
     "deepspeed/runtime/engine.py _do_sanity_check", "Remove it.", repair::remove_it},
};

bool offloads(const DsValues& v) {
  for (const char* device :
       {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"})
    if (v.maybe_text(device).value_or("none") != "none") return true;
  return false;
}

}  // namespace

std::span<const Rule> zero_rules() {
  return kRules;
}

void check_zero(const LintSubject& s, LintFindings& findings) {
  const DsValues& v = s.values;
  if (s.context.world_size == 1 && v.stage() > 0 && !offloads(v))
    findings.config.warning("zero.single-rank"_rule, "zero_optimization.stage",
                            say("stage {} on one GPU shards nothing", v.stage()),
                            "0, or offload_optimizer");
  if (s.cluster == nullptr || v.stage() != 3) return;
  const std::int64_t node = s.cluster->gpus_per_node;
  const std::int64_t secondary = v.integer(kHpz);
  if (secondary > node && s.cluster->world() % secondary == 0)
    findings.config.warning("zero.hpz-across-nodes"_rule, kHpz,
                            say("groups of {} GPUs do not fit a node of {}", secondary, node),
                            say("{}", node));
  const std::int64_t shard = v.integer("zero_optimization.mics_shard_size");
  if (shard > 0 && v.flag(kHierarchical) && (shard / node < 2 || shard % node != 0))
    findings.config.error(
        "zero.mics-hierarchical"_rule, kHierarchical,
        say("a shard group of {} does not span whole nodes of {} GPUs", shard, node), "false");
  if (s.cluster->nodes == 1 && v.flag(kQuantized) && v.flag("zero_optimization.reduce_scatter"))
    findings.config.warning("zero.quantized-gradients-one-node"_rule, kQuantized,
                            "has no effect on a single node");
}

}  // namespace shardplan
