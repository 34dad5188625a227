#include "frameworks/deepspeed/division.h"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/degrees.h"
#include "parallel/sharding.h"

namespace shardplan {
namespace {

using Problem = std::optional<DivisionProblem>;

constexpr const char* kZero = "framework.ds_config.zero_optimization.";

/// The groups of MiCS, hpZ and qgZ are made of the whole world (zero/mics_utils.py,
/// utils/groups.py).
Problem check_degrees(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  if (plan.parallel.model_ranks() == 1 && plan.parallel.expert == 1) return std::nullopt;
  const char* const key = zero.mics()                ? "mics_shard_size"
                          : zero.has_secondary()     ? "zero_hpz_partition_size"
                          : zero.quantized_gradients ? "zero_quantized_gradients"
                                                     : nullptr;
  if (key == nullptr) return std::nullopt;
  return DivisionProblem{kZero + std::string(key),
                         "its groups are made of all GPUs, whatever the degrees divide: not "
                         "estimated beside tensor, sequence, pipeline or expert parallelism",
                         "no other degree than data parallelism, or without it"};
}

bool experts_have(const Model& model, std::string_view weight) {
  return std::any_of(model.parameters.begin(), model.parameters.end(), [&](const Parameter& p) {
    return p.kind == ParameterKind::expert && p.name.ends_with(weight);
  });
}

/// DeepSpeed's own sparse layers, in place of a model's.
Problem check_moe(const Model& model, const Plan& plan) {
  if (!plan.framework.deepspeed.moe) return std::nullopt;
  constexpr const char* kMoe = "framework.moe";
  if (expert_count(model) == 0)
    return DivisionProblem{kMoe, "a dense model has no sparse layers to replace", "no moe block"};
  if (!experts_have(model, "gate_proj"))
    return DivisionProblem{kMoe, "experts of this architecture cannot be estimated yet in it",
                           "mixtral, qwen2_moe, qwen3_moe or deepseek"};
  // engine.py _validate_zero3_moe_compatibility
  if (plan.framework.deepspeed.zero.stage == 3)
    return DivisionProblem{kMoe, "DeepSpeed refuses its own sparse layers at ZeRO stage 3",
                           "ZeRO stage 0, 1 or 2; or without moe, which leaves AutoEP"};
  return std::nullopt;
}

/// DeepSpeed's AutoEP (module_inject/auto_ep.py) and its own layers: what of them can be estimated,
/// and what they refuse.
Problem check_experts(const Model& model, const Plan& plan) {
  if (auto problem = check_moe(model, plan)) return problem;
  const DeepSpeedOptions& o = plan.framework.deepspeed;
  if (plan.parallel.expert == 1 && !o.moe) return std::nullopt;
  const std::string key = o.moe ? "framework.moe" : "parallel.expert";
  // Its patterns are of whole module names, before which peft puts "base_model.model."
  // (_raise_no_moe_layers_detected).
  if (plan.workload.lora && !o.moe)
    return DivisionProblem{key, "AutoEP stops under LoRA: it finds no sparse layer by its name",
                           "1, or workload.method full"};
  // The presets of 0.19.6 all have a gate (auto_ep_presets), beside the other weight or with it.
  if (!o.moe && !experts_have(model, "gate_proj") && !experts_have(model, "gate_up_proj"))
    return DivisionProblem{key,
                           "DeepSpeed 0.19.6's AutoEP stops: no preset has experts without a gate",
                           "1, or framework fsdp2"};
  const char* message = o.zero.stage == 3 && o.zero.quantized_weights
                            ? "DeepSpeed's experts cannot be estimated yet with quantized weights"
                        : o.grad_accum_dtype == DType::f32
                            ? "DeepSpeed's experts cannot be estimated yet with fp32 accumulation"
                        : plan.parallel.model_ranks() > 1
                            ? "DeepSpeed's experts cannot be estimated yet beside another degree"
                        : plan.workload.lora
                            ? "DeepSpeed's experts cannot be estimated yet under LoRA"
                            : nullptr;
  if (message == nullptr) return std::nullopt;
  return DivisionProblem{key, message, "ZeRO over data-parallel GPUs, in 16 bits"};
}

/// Groups of MiCS (zero/mics_utils.py) and of hpZ, which is at most the world (utils/groups.py
/// _create_zero_param_parallel_group).
Problem check_groups(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const std::int64_t world = plan.cluster.world();
  const bool mics = zero.mics();
  const std::int64_t size = mics ? zero.mics_shard_size : std::min(zero.hpz_partition_size, world);
  if (size <= 1 || world % size == 0) return std::nullopt;
  return DivisionProblem{
      fmt::format("{}{}", kZero, mics ? "mics_shard_size" : "zero_hpz_partition_size"),
      fmt::format("{} does not divide the {} ranks", size, world),
      fmt::format("{}", nearest_divisor(world, size))};
}

/// The first tensor whose shards the quantizer does not take (partition_parameters.py
/// CUDAQuantizer.quantize asserts it); null when it takes all.
const Parameter* unquantizable(const Model& model, const ZeroOptions& zero, std::int64_t ranks) {
  constexpr std::int64_t kUnit = 8;  // elements: a kernel's access
  for (const Parameter& p : model.parameters) {
    const bool quantized =
        zero.quantized_weights || (zero.quantized_nontrainable_weights && !p.trainable);
    // What is smaller stays gathered from the second step on.
    const bool persistent = p.trainable && p.numel <= zero.param_persistence_threshold;
    if (quantized && !persistent && (p.numel + ranks - 1) / ranks % kUnit != 0) return &p;
  }
  return nullptr;
}

/// The quantizer takes every tensor that it is given for numbers.
Problem check_packed(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  if (!plan.workload.lora || plan.workload.lora->base == Quantization::none) return std::nullopt;
  if (!zero.quantized_weights && !zero.quantized_nontrainable_weights) return std::nullopt;
  return DivisionProblem{
      fmt::format("{}{}", kZero,
                  zero.quantized_weights ? "zero_quantized_weights"
                                         : "zero_quantized_nontrainable_weights"),
      "true, and DeepSpeed 0.19.6 would round the packed bits of a base in few bits as if they "
      "were numbers",
      "false"};
}

Problem check_quantizer(const Model& model, const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const std::int64_t ranks = plan.replicas();
  if (zero.mics() || ranks == 1) return std::nullopt;
  const Parameter* const odd = unquantizable(model, zero, ranks);
  if (odd == nullptr) return std::nullopt;
  std::int64_t fewer = ranks - 1;
  while (fewer > 1 && unquantizable(model, zero, fewer) != nullptr) --fewer;
  return DivisionProblem{
      fmt::format("{}{}", kZero,
                  zero.quantized_weights ? "zero_quantized_weights"
                                         : "zero_quantized_nontrainable_weights"),
      fmt::format("over {} GPUs the shards of '{}' have {} elements, and the quantizer takes "
                  "multiples of 8",
                  ranks, odd->name, (odd->numel + ranks - 1) / ranks),
      fewer > 1 ? fmt::format("{} GPUs, or false", fewer) : "false"};
}

}  // namespace

/// deepspeed/runtime/pipe/engine.py, PipelineEngine.__init__.
std::optional<DivisionProblem> deepspeed_pipeline_problem(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  if (zero.stage >= 2)
    return DivisionProblem{
        "parallel.pipeline",
        fmt::format("DeepSpeed's pipeline engine works with ZeRO stages 0 and 1, "
                    "found {}",
                    zero.stage),
        "framework.zero_stage 0 or 1"};
  if (plan.parallel.tensor * plan.parallel.sequence > 1)
    return DivisionProblem{"parallel.pipeline",
                           "with AutoTP or Ulysses cannot be estimated yet: DeepSpeed's pipeline "
                           "engine takes neither from its configuration",
                           "1, or framework megatron"};
  if (zero.offload_optimizer.device != OffloadDevice::none)
    return DivisionProblem{"parallel.pipeline",
                           "with an optimizer on the host cannot be estimated yet",
                           "no offload_optimizer"};
  return std::nullopt;
}

std::optional<DivisionProblem> deepspeed_sharding_problem(const Model& model, const Plan& plan) {
  if (auto problem = check_experts(model, plan)) return problem;
  if (plan.framework.deepspeed.zero.stage < 3) return std::nullopt;
  if (auto problem = check_degrees(plan)) return problem;
  if (auto problem = check_groups(plan)) return problem;
  if (auto problem = check_packed(plan)) return problem;
  return check_quantizer(model, plan);
}

std::int64_t deepspeed_shard_group(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  if (zero.has_secondary()) return std::min(zero.hpz_partition_size, plan.replicas());
  return zero.mics() ? plan.shard_ranks() : 0;
}

HopRanks deepspeed_hops(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const std::int64_t in_node = plan.cluster.gpus_per_node;
  if (zero.mics() && zero.mics_hierarchical_gather) return {in_node, plan.shard_ranks() / in_node};
  const bool quantized = zero.stage == 3 && !zero.mics() && zero.quantized_gradients;
  return quantized && plan.cluster.nodes > 1 ? HopRanks{in_node, plan.cluster.nodes} : HopRanks{};
}

std::int64_t deepspeed_foreign_contexts(const Plan& plan) {
  const bool autotp = plan.workload.kind == WorkKind::train && plan.parallel.pipeline == 1;
  return autotp ? plan.parallel.tensor - 1 : 0;
}

}  // namespace shardplan
