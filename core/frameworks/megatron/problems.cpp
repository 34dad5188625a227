#include "frameworks/megatron/problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "frameworks/megatron/saved_inputs.h"
#include "frameworks/megatron/sent_modules.h"
#include "optimizers/description.h"
#include "parallel/degrees.h"

namespace shardplan {
namespace {

/// megatron/training/arguments.py validate_args, transformer_config.py __post_init__.
std::optional<DivisionProblem> saved_activations_problem(const Plan& plan) {
  if (!plan.framework.megatron.distribute_saved_activations || distributes_saved_activations(plan))
    return std::nullopt;
  const auto problem = [](std::string found, std::string expected) {
    return DivisionProblem{"framework.distribute_saved_activations", std::move(found),
                           std::move(expected)};
  };
  if (!recomputes_whole_layers(plan))
    return problem(fmt::format("true, with checkpointing '{}': only inputs of layers that are "
                               "recomputed whole are saved in parts",
                               name_of(plan.checkpointing)),
                   "checkpointing full, or false");
  if (plan.parallel.tensor == 1)
    return problem("true, and no tensor-parallel GPUs to divide saved inputs over",
                   "a tensor degree above 1, or false");
  return problem("true, with parallel.sequence_parallel, which divides saved inputs already",
                 "false, or parallel.sequence_parallel false");
}

/// parallel_state.py: instances divide the data-parallel ranks, of experts too.
std::optional<DivisionProblem> instances_problem(const Plan& plan) {
  const std::int64_t instances = plan.framework.megatron.distributed_optimizer_instances;
  const Parallel& p = plan.parallel;
  const std::int64_t data = plan.data_ranks() * p.sequence * p.context;
  const std::int64_t of_experts = data * p.tensor / (p.expert * p.expert_tensor);
  if (data % instances == 0 && (p.expert == 1 || of_experts % instances == 0)) return std::nullopt;
  return DivisionProblem{
      "framework.distributed_optimizer_instances",
      fmt::format("{}, which does not divide the {} data-parallel GPUs, or the {} that have the "
                  "same experts",
                  instances, data, of_experts),
      "1, or a number that divides both"};
}

/// --fp8-recipe: Transformer Engine's, in its layers.
std::optional<DivisionProblem> recipe_problem(const Plan& plan) {
  const ProductRecipe& recipe = recipe_of(plan.precision.linear);
  if (recipe.cast == OperandCast::none) return std::nullopt;
  const auto problem = [&](std::string_view why) {
    return DivisionProblem{"precision.linear", fmt::format("{}: {}", recipe.name, why),
                           "fp8-delayed, fp8-current, fp8-blockwise or bf16"};
  };
  if (recipe.megatron.empty()) return problem("Megatron-LM's are Transformer Engine's");
  if (!plan.framework.megatron.transformer_engine)
    return problem("transformer_impl 'local' has no products in 8 bits");
  return std::nullopt;
}

/// Megatron-LM has no adapters of its own: these are mcore-bridge's (1.6, tuners/lora.py), which
/// ms-swift trains.
std::optional<DivisionProblem> adapters_problem(const Plan& plan) {
  if (!plan.workload.lora) return std::nullopt;
  const Lora& lora = *plan.workload.lora;
  const auto problem = [](std::string_view key, std::string_view found, std::string_view expected) {
    return DivisionProblem{fmt::format("workload.lora.{}", key), std::string(found),
                           std::string(expected)};
  };
  if (!plan.framework.megatron.transformer_engine)
    return DivisionProblem{"framework.transformer_impl",
                           "local: mcore-bridge adapts Transformer Engine's layers alone",
                           "transformer_engine"};
  if (lora.base != Quantization::none)
    return problem("quantization", "mcore-bridge's adapters have no base in few bits", "none");
  if (lora.magnitudes)
    return problem("dora", "mcore-bridge's adapters have no DoRA (LoraParallelLinear stops)",
                   "false");
  if (lora.rotation_block > 0)
    return problem("oft_block_size", "mcore-bridge's adapters have no OFT", "LoRA");
  if (!lora.parameters.empty())
    return problem("target_parameters",
                   "mcore-bridge's adapters have modules as targets, those of experts too",
                   "workload.lora.targets");
  if (plan.parallel.tensor > 1 && !lora.saved.empty())
    return DivisionProblem{"workload.lora.modules_to_save",
                           "copies of divided tables are not estimated yet",
                           "a tensor degree of 1"};
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> megatron_options_problem(const Framework& framework) {
  const MegatronOptions& m = framework.megatron;
  if (m.overlap_param_gather && !(m.distributed_optimizer && m.overlap_grad_reduce))
    return DivisionProblem{"overlap_param_gather",
                           "true, without both distributed_optimizer and overlap_grad_reduce",
                           "false"};
  if (m.distributed_optimizer_instances > 1 && !m.distributed_optimizer)
    return DivisionProblem{"distributed_optimizer_instances",
                           "more than 1, without distributed_optimizer", "1"};
  if (m.shard_gradients && !m.distributed_optimizer)
    return DivisionProblem{"shard_gradients", "true, without distributed_optimizer", "false"};
  if (m.shard_parameters && !m.shard_gradients)
    return DivisionProblem{"shard_parameters", "true, without shard_gradients", "false"};
  if (m.tp_comm_overlap && !m.transformer_engine)
    return DivisionProblem{"tp_comm_overlap",
                           "true, with transformer_impl 'local': it is Transformer Engine's",
                           "false"};
  return std::nullopt;
}

std::optional<DivisionProblem> megatron_checkpoint_problem(const Plan& plan) {
  if (plan.checkpointing == Checkpointing::selective_op)
    return DivisionProblem{"checkpointing.policy",
                           "selective_op: Megatron-LM's selective recomputation names modules, "
                           "not operations",
                           "selective, which is its core_attn"};
  if (plan.checkpoint_share.offload)
    return DivisionProblem{
        "checkpointing.offload",
        "true: what Megatron-LM sends (--fine-grained-activation-offloading) is said by "
        "module (framework.offload_modules)",
        "false"};
  if (plan.keeps_some_blocks() && plan.checkpoint_share.every > 0)
    return DivisionProblem{"checkpointing.every",
                           "Megatron-LM recomputes the first layers of each stage "
                           "(--recompute-method block), or all",
                           "count"};
  return std::nullopt;
}

std::optional<DivisionProblem> megatron_sharding_problem(const Model& model, const Plan& plan) {
  if (auto problem = sent_modules_problem(model, plan)) return problem;
  const Parallel& p = plan.parallel;
  const auto& all = model.parameters;
  if (p.expert_tensor > 1 && std::any_of(all.begin(), all.end(), [](const Parameter& tensor) {
        return tensor.adapter && tensor.kind == ParameterKind::expert;
      }))
    return DivisionProblem{"parallel.expert_tensor",
                           "more than 1, with adapters of experts: mcore-bridge stops "
                           "(tuners/lora.py, LoraParallelLinear)",
                           "1"};
  if (p.tensor == 1 || p.sequence_parallel || expert_count(model) == 0) return std::nullopt;
  return DivisionProblem{"parallel.sequence_parallel",
                         "false, with experts and a tensor degree: Megatron-LM stops "
                         "(moe_layer.py, forward)",
                         "true"};
}

std::optional<DivisionProblem> megatron_plan_problem(const Plan& plan) {
  const Precision& p = plan.precision;
  if (p.autocast())
    return DivisionProblem{"precision", fmt::format("Megatron-LM has no autocast ({})", p.name),
                           "bf16-master, fp16-master or fp32"};
  if (p.params != DType::f32 && !p.master)
    return DivisionProblem{
        "precision", "Megatron-LM has no 16-bit parameters without master weights", "bf16-master"};
  const bool cuts = plan.framework.megatron.tp_comm_overlap && plan.parallel.tensor > 1;
  if (cuts && !plan.parallel.sequence_parallel)
    return DivisionProblem{"framework.tp_comm_overlap", "true, without parallel.sequence_parallel",
                           "false"};
  if (auto problem = instances_problem(plan)) return problem;
  if (plan.optimizer.kind->megatron.empty())
    return DivisionProblem{"optimizer", "Megatron-LM's optimizers are Adam, SGD and Muon here",
                           "adamw, sgd or muon"};
  if (auto problem = adapters_problem(plan)) return problem;
  if (auto problem = sent_modules_problem(plan)) return problem;
  if (auto problem = recipe_problem(plan)) return problem;
  return saved_activations_problem(plan);
}

}  // namespace shardplan
