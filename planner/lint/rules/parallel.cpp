// Pipeline, tensor, sequence and expert parallelism; DeepSpeed's activation checkpointing.
#include "lint/repairs.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kPipeline = "deepspeed/runtime/pipe/engine.py __init__";
constexpr std::string_view kTensor =
    "deepspeed/runtime/engine.py _configure_tensor_parallel, _apply_autotp_partitioning";
constexpr std::string_view kCheckpointing =
    "deepspeed/runtime/activation_checkpointing/checkpointing.py configure";

constexpr Rule kRules[] = {
    {"ds.pipeline-stage"_rule, Severity::error, "A pipeline with ZeRO stage 2 or 3",
     "The pipeline engine keeps gradients over a whole schedule and asserts a stage below 2.",
     kPipeline, "Use stage 0 or 1."},
    {"ds.pipeline-block-stage"_rule, Severity::warning, "A pipeline block with ZeRO stage 2 or 3",
     "The block is read only by PipelineModule, which works only with stages 0 and 1.", kPipeline,
     "Use stage 0 or 1, or remove the block."},
    {"ds.pipeline-overlap"_rule, Severity::warning, "overlap_comm under a pipeline",
     "The pipeline engine reduces gradients after its schedule; nothing overlaps.", kPipeline,
     "Remove it.", repair::remove_it},
    {"ds.autotp-off"_rule, Severity::warning, "A tensor_parallel block that is off",
     "autotp_size is 0 or missing, so every rank holds whole layers.", kTensor,
     "Set tensor_parallel.autotp_size, or remove the block."},
    {"ds.autotp-sizes"_rule, Severity::error, "Two tensor-parallel sizes",
     "tensor_parallel.tp.tp_size must be 1 or equal to autotp_size.", kTensor,
     "Write autotp_size only."},
    {"ds.autotp-sequence"_rule, Severity::error, "Tensor and sequence parallelism together",
     "AutoTP and Ulysses both take the ranks of one group.", kTensor, "Choose one of the two."},
    {"ds.autotp-stage-3"_rule, Severity::error, "Tensor parallelism at ZeRO stage 3",
     "Before 0.19.4 DeepSpeed asserts stage 2 or less with AutoTP.", kTensor,
     "Use stage 0, 1 or 2, or DeepSpeed 0.19.4."},
    {"ds.expert-load-balance"_rule, Severity::error, "expert_parallel.load_balance_coeff",
     "Only null is implemented.", "deepspeed/module_inject/auto_ep_config.py", "Remove it.",
     repair::remove_it},
    {"ds.expert-ranks"_rule, Severity::error, "autoep_size does not divide the ranks",
     "Experts are shared out over groups of equal size.",
     "deepspeed/module_inject/auto_ep_config.py", "Choose a divisor of the ranks."},
    {"ds.expert-stage-3"_rule, Severity::error, "Expert parallelism at stage 3 with another split",
     "At stage 3 expert parallelism works alone: not with tensor or sequence parallelism, ZeRO++ "
     "or "
     "MiCS.",
     "deepspeed/runtime/engine.py _validate_zero3_moe_compatibility",
     "Use stage 1 or 2, or switch the other off."},
    {"ds.contiguous-without-partition"_rule, Severity::error,
     "Contiguous checkpoints that are not partitioned",
     "contiguous_memory_optimization asserts partition_activations.", kCheckpointing,
     "Set activation_checkpointing.partition_activations."},
    {"ds.contiguous-without-number"_rule, Severity::error,
     "Contiguous checkpoints without their number",
     "The buffer is allocated for number_checkpoints, which has no default.", kCheckpointing,
     "Set activation_checkpointing.number_checkpoints to the number of layers."},
    {"ds.vocabulary-size"_rule, Severity::warning, "A vocabulary that is no multiple of 8",
     "The head's matrix product falls off the tensor cores' fast path.",
     "deepspeed/runtime/config.py _do_warning_check", "Pad the vocabulary."},
};

}  // namespace

std::span<const Rule> parallel_rules() {
  return kRules;
}

}  // namespace shardplan
