#include "rollout/engine.h"

#include <algorithm>
#include <cmath>

#include "formats/stored_format.h"
#include "frameworks/registry.h"
#include "lowering/inference/generate.h"
#include "model/model.h"
#include "simulator/memory.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// Engines compute in 16 bits.
constexpr std::int64_t kEach = 2;

/// Of `numel` elements of a parameter, as its format stores them.
std::int64_t bytes_of(const Parameter& p, std::int64_t numel, Quantization format) {
  if (!p.quantized()) return checked_mul(numel, kEach);
  return ceil_div(bytes_in(format_of(format), p.numel, p.shape.front()), ceil_div(p.numel, numel));
}

/// Matrices are cut over the ranks, tables of words padded before (vllm/model_executor/layers/
/// vocab_parallel_embedding.py, pad_vocab_size); the rest is whole. Adapters are merged, and
/// trained copies take the place of their originals.
std::int64_t weight_bytes(const RolloutEngine& engine, const Model& model, Quantization format) {
  std::int64_t bytes = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.adapter || p.copy) return;
    std::int64_t numel = p.numel;
    if (p.kind == ParameterKind::embedding && !p.shape.empty())
      numel = round_up(p.shape.front(), engine.engine->vocabulary_multiple) *
              (p.numel / p.shape.front());
    const bool cut = p.shape.size() > 1;
    const std::int64_t ranks = p.kind == ParameterKind::expert
                                   ? std::max(engine.tensor_parallel, engine.expert_parallel)
                                   : engine.tensor_parallel;
    const std::int64_t own = cut ? ceil_div(numel, ranks) : numel;
    bytes = checked_add(bytes,
                        checked_mul(round_up(bytes_of(p, own, format), kAllocationUnit), repeat));
  });
  return bytes;
}

/// The plan of an engine's own pass: one process, everything in 16 bits, whole weights.
Plan own_plan(const Plan& generation) {
  Plan plan = generation;
  plan.framework = {};
  plan.framework.kind = default_framework(1);
  plan.trainer = &default_trainer();
  plan.parallel = {};
  plan.checkpointing = Checkpointing::none;
  plan.compile.reset();
  plan.kernels = {};
  const DType half = plan.precision.compute == DType::f16 ? DType::f16 : DType::bf16;
  plan.precision.params = plan.precision.compute = half;
  plan.workload.lora.reset();
  plan.workload.micro_batch = 1;
  plan.workload.generation.injection.reset();
  return plan;
}

/// Keys and values of a block of all layers. Fewer heads than ranks are repeated.
std::int64_t block_bytes(const RolloutEngine& engine, const Model& generator, Plan plan) {
  // Pages are slices of one tensor: what the allocator rounds up is not of each.
  constexpr std::int64_t kLeast = 16;
  const std::int64_t together = ceil_div(kLeast, engine.block_tokens);
  plan.workload.sequence_length = checked_mul(engine.block_tokens, together);
  plan.workload.generation.new_tokens = 0;
  const std::int64_t heads = std::max<std::int64_t>(generator.facts.key_value_heads, 1);
  return ceil_div(full_cache_bytes(generator, plan),
                  std::min(engine.tensor_parallel, heads) * together);
}

/// The profile runs the network once over as many tokens as a pass may take, and the sampler over
/// as many sequences (gpu_model_runner.py, profile_run). The engine's fused kernels take less than
/// PyTorch's, whose pass this is.
std::int64_t activation_bytes(const RolloutEngine& engine, const Model& generator,
                              const Plan& plan) {
  const Program pass = lower_pass(generator, plan, {engine.batched_tokens, 0}, nullptr);
  const MemoryProfile memory = simulate_memory(pass);
  const std::int64_t cache =
      memory.at_peak[static_cast<std::size_t>(Category::kv_cache)];  // it is paged, not made here
  const std::int64_t row = generator.facts.vocabulary * (kEach + 4 * engine.engine->sampler_rows);
  const std::int64_t graphs =
      engine.cuda_graphs ? checked_mul(engine.engine->graph_bytes, engine.sequences) : 0;
  return checked_add(std::max(memory.peak - cache, checked_mul(row, engine.sequences)), graphs);
}

}  // namespace

EngineMemory engine_memory(const RolloutEngine& engine, const Model& generator,
                           const Plan& generation) {
  const Plan plan = own_plan(generation);
  EngineMemory m;
  const auto share = static_cast<std::int64_t>(
      std::ceil(engine.utilization * static_cast<double>(plan.cluster.gpu.usable.count())));
  m.weights = weight_bytes(engine, generator, generation.workload.generation.weights);
  m.activations = activation_bytes(engine, generator, plan);
  m.block_bytes = block_bytes(engine, generator, plan);
  const std::int64_t outside = engine.engine->share_is_static ? m.activations : 0;
  m.budget = checked_add(share, outside);
  const std::int64_t left = std::max<std::int64_t>(m.budget - m.weights - m.activations, 0);
  m.blocks = m.block_bytes > 0 ? left / m.block_bytes : 0;
  m.cache = checked_mul(m.blocks, m.block_bytes);
  m.blocks_needed = ceil_div(engine.model_length, engine.block_tokens);
  m.asleep = engine.sleep_level > 0 ? m.activations : m.budget;
  return m;
}

double least_utilization(const RolloutEngine& engine, const EngineMemory& memory,
                         const Plan& generation) {
  const std::int64_t profiled = engine.engine->share_is_static ? 0 : memory.activations;
  const std::int64_t bytes =
      checked_add(memory.weights + profiled, checked_mul(memory.blocks_needed, memory.block_bytes));
  const double share =
      static_cast<double>(bytes) / static_cast<double>(generation.cluster.gpu.usable.count());
  return std::ceil(share * 100) / 100;
}

}  // namespace shardplan
