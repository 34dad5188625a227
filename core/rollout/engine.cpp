#include "rollout/engine.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "formats/stored_format.h"
#include "frameworks/registry.h"
#include "lowering/inference/generate.h"
#include "lowering/inference/pass.h"
#include "lowering/library_workspaces.h"
#include "lowering/rank_model.h"
#include "model/model.h"
#include "parallel/cuts.h"
#include "parallel/degrees.h"
#include "rollout/graphs.h"
#include "rollout/packed_products.h"
#include "simulator/memory.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// Engines compute in 16 bits.
constexpr std::int64_t kEach = 2;

/// Of `numel` elements of a parameter, as its format stores them: experts as linear layers, in a
/// checkpoint that is made for an engine.
std::int64_t bytes_of(const Parameter& p, std::int64_t numel, Quantization format, double share) {
  const bool stored = p.quantized() || p.kind == ParameterKind::expert;
  const std::int64_t half = checked_mul(numel, kEach);
  if (!stored || format == Quantization::none) return half;
  const NumberFormat& f = format_of(format);
  std::int64_t whole = bytes_in(f, p.numel, p.shape.front());
  if (f.pads_inputs > 1 && p.shape.size() == 3)
    whole = ceil_div(checked_mul(whole, round_up(p.shape[1], f.pads_inputs)), p.shape[1]);
  const std::int64_t few = ceil_div(whole, ceil_div(p.numel, numel));
  if (share >= 1) return few;
  return std::llround(share * static_cast<double>(few) + (1 - share) * static_cast<double>(half));
}

/// GPUs that divide a parameter. A head of keys is on as many as share it (vllm/model_executor/
/// layers/linear.py, QKVParallelLinear: num_kv_head_replicas; SGLang's is the same).
std::int64_t ranks_of(const Parameter& p, const RolloutEngine& engine, const ModelFacts& facts) {
  if (p.kind == ParameterKind::expert)
    return std::max(engine.tensor_parallel, engine.expert_parallel);
  const bool shared = facts.key_value_heads > 0 && is_key_or_value(p.name);
  return shared ? std::min(engine.tensor_parallel, facts.key_value_heads) : engine.tensor_parallel;
}

/// A table for all layers that turn alike: cosines and sines of every position that the model has,
/// however long a sequence may be (vllm/model_executor/layers/rotary_embedding/base.py).
std::int64_t position_bytes(const Model& model) {
  std::int64_t bytes = 0;
  for (const Shared& shared : model.shared)
    if (shared.name == "cos")
      bytes = checked_add(
          bytes, checked_mul(checked_mul(shared.extent.per, kEach), model.facts.max_positions));
  return bytes;
}

/// Matrices are cut over the ranks, tables of words padded before (vllm/model_executor/layers/
/// vocab_parallel_embedding.py, pad_vocab_size); the rest is whole. Adapters are merged, and
/// trained copies take the place of their originals.
std::int64_t weight_bytes(const RolloutEngine& engine, const Model& model, Quantization format) {
  std::int64_t bytes = engine.engine->tables_of_positions ? position_bytes(model) : 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.adapter || p.copy) return;
    std::int64_t numel = p.numel;
    if (p.kind == ParameterKind::embedding && !p.shape.empty())
      numel = round_up(p.shape.front(), engine.engine->vocabulary_multiple) *
              (p.numel / p.shape.front());
    const bool cut = p.shape.size() > 1;
    const std::int64_t ranks = ranks_of(p, engine, model.facts);
    const std::int64_t own = cut ? ceil_div(numel, ranks) : numel;
    bytes = checked_add(
        bytes,
        checked_mul(round_up(bytes_of(p, own, format, engine.quantized_share), kAllocationUnit),
                    repeat));
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
  return ceil_div(engine_cache_bytes(generator, plan),
                  std::min(engine.tensor_parallel, heads) * together);
}

/// Rows of both operands of a product, and of its result.
struct Rows {
  std::int64_t taken = 0, made = 0;
};
Rows rows_of(const Kernel& product) {
  const std::int64_t rows = checked_mul(product.m, product.batch) * kEach;
  return {checked_mul(rows, product.k), checked_mul(rows, product.n)};
}

/// What a pass over a layer holds at most: the residual stream, and other rows of it; what a
/// product takes and makes, and what the next takes, which one kernel makes of it
/// (vllm/model_executor/models/llama.py; of experts the caches of fused_moe.py). Nothing where the
/// graph has more than linears.
std::optional<std::int64_t> layer_bytes(const PackedProducts& products, std::int64_t held_rows) {
  if (!products.paired || products.kernels.empty()) return std::nullopt;
  const std::int64_t stream = rows_of(products.kernels.front()).taken;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < products.kernels.size(); ++i) {
    const Rows own = rows_of(products.kernels[i]);
    const Rows next = rows_of(products.kernels[(i + 1) % products.kernels.size()]);
    most = std::max(most, checked_add(own.taken + own.made, next.taken));
  }
  return checked_add(checked_mul(1 + held_rows, stream), most);
}

/// The engine's own kernels; nothing where they are not known for all layers, or where the layers
/// are not divided as the engine divides them.
std::optional<std::int64_t> fused_bytes(const RolloutEngine& engine, const Model& generator,
                                        const Plan& plan) {
  Plan share = engine_share(plan, engine);
  share.workload.micro_batch = engine.batched_tokens;
  share.workload.sequence_length = 1;
  share.workload.generation.new_tokens = 0;
  if (generator.facts.has_state || degree_problem(generator, share)) return std::nullopt;
  const RankModel network(generator, share);
  const ModelRun run = run_pass(network.model(), share, {1, 0}, nullptr);
  std::int64_t most = 0;
  for (const SegmentRun& segment : run.segments) {
    if (!segment.segment->checkpointable) continue;  // embeddings, and the head, which is profiled
    const auto bytes = layer_bytes(packed_products(segment, true), engine.engine->held_rows);
    if (!bytes) return std::nullopt;
    most = std::max(most, *bytes);
  }
  return most;
}

/// PyTorch's kernels, of the share of the network where its layers are divided as the engine
/// divides them: more than an engine's.
std::int64_t unfused_bytes(const RolloutEngine& engine, const Model& generator, const Plan& plan) {
  const Plan divided = engine_share(plan, engine);
  const bool whole = degree_problem(generator, divided).has_value();
  const Plan& share = whole ? plan : divided;
  const RankModel network(generator, share);
  const Program pass = lower_pass(network.model(), share, {engine.batched_tokens, 0}, nullptr);
  const MemoryProfile memory = simulate_memory(pass);
  // The cache is paged, not made here.
  return memory.peak - memory.at_peak[static_cast<std::size_t>(Category::kv_cache)];
}

bool has_experts(const Model& model) {
  bool found = false;
  model.for_each_distinct(
      [&](const Parameter& p, std::int64_t) { found = found || p.kind == ParameterKind::expert; });
  return found;
}

/// The profile runs the network once over as many tokens as a pass may take, and then, with the
/// stream that it returned, chooses a token for as many sequences as may run (gpu_model_runner.py
/// and gpu/model_runner.py, profile_run).
std::int64_t profiled_bytes(const RolloutEngine& engine, const Model& generator, const Plan& plan,
                            const EngineRunner& runner) {
  const auto fused = fused_bytes(engine, generator, plan);
  const std::int64_t pass = fused ? *fused : unfused_bytes(engine, generator, plan);
  const std::int64_t row = generator.facts.vocabulary * (kEach + 4 * runner.profiled_rows);
  const std::int64_t stream =
      runner.holds_stream
          ? checked_mul(checked_mul(generator.facts.hidden, kEach), engine.batched_tokens)
          : 0;
  return std::max(pass, checked_add(stream, checked_mul(row, engine.sequences)));
}

/// States of sequences, which are there from the start to the end: words that they were given, and
/// others.
std::int64_t counter_bytes(const RolloutEngine& engine, const Model& generator,
                           const EngineRunner& runner) {
  constexpr std::int64_t kBits = 8;
  const std::int64_t words =
      ceil_div(checked_mul(generator.facts.vocabulary, runner.counter_bits), kBits);
  return checked_mul(checked_add(words, runner.sequence_bytes), engine.sequences);
}

/// What it keeps when it sleeps: graphs, and the workspace of products. Weights, the states beside
/// them and the cache are in the allocator that gives back (vllm/device_allocator/cumem.py).
void add_activations(EngineMemory& m, const RolloutEngine& engine, const Model& generator,
                     const Plan& plan) {
  const EngineDescription& e = *engine.engine;
  const EngineRunner& runner = runner_of(engine, generator);
  const std::int64_t counters = counter_bytes(engine, generator, runner);
  const std::int64_t graphs = graph_bytes(engine, generator, plan.cluster.gpu);
  const std::int64_t products = e.library_bytes > 0 ? cublas_workspace(plan.cluster.gpu) : 0;
  m.outside = runner.kept_bytes;
  if (!runner.graphs_in_share) m.outside = checked_add(m.outside, graphs);
  if (!e.counters_in_share) m.outside = checked_add(m.outside, counters);
  const std::int64_t profiled =
      checked_add(profiled_bytes(engine, generator, plan, runner), products);
  m.activations =
      checked_add(checked_add(profiled, runner.kept_bytes), checked_add(graphs, counters));
  m.asleep = e.library_bytes > 0 ? checked_add(graphs, 2 * products) : m.activations;
}

/// Of what an engine takes its share: vLLM of the whole GPU, SGLang of what the driver says is
/// free, its own process being there (model_runner.py, get_available_gpu_memory). So does
/// TensorRT-LLM, but what its passes take is said to be so much more than it is that with its
/// process taken off published rows of 70B on two GPUs, 15 % too slow, are 28.
std::int64_t shared_bytes(const RolloutEngine& engine, const Plan& plan, const EngineMemory& m) {
  const std::int64_t usable = plan.cluster.gpu.usable.count();
  return engine.engine->share_is_static ? std::max<std::int64_t>(usable - m.process, 0) : usable;
}

/// All tensors of the engine, by its share of the GPU.
std::int64_t budget_of(const RolloutEngine& engine, const Plan& plan, const EngineMemory& m) {
  const std::int64_t usable = shared_bytes(engine, plan, m);
  const auto share_of = [&](std::int64_t bytes) {
    return static_cast<std::int64_t>(std::ceil(engine.utilization * static_cast<double>(bytes)));
  };
  const std::int64_t before = checked_add(m.weights, m.activations);
  if (engine.engine->share_is_of_free)
    return checked_add(before, share_of(std::max<std::int64_t>(usable - before, 0)));
  const std::int64_t on_top = engine.engine->share_is_static ? m.activations : m.outside;
  return checked_add(share_of(usable) - engine.engine->library_bytes, on_top);
}

}  // namespace

const EngineRunner& runner_of(const RolloutEngine& engine, const Model& generator) {
  return has_experts(generator) ? engine.engine->runner_of_experts : engine.engine->runner;
}

EngineMemory engine_memory(const RolloutEngine& engine, const Model& generator,
                           const Plan& generation, std::int64_t process) {
  const Plan plan = own_plan(generation);
  EngineMemory m;
  m.process = process;
  m.weights = weight_bytes(engine, generator, generation.workload.generation.weights);
  add_activations(m, engine, generator, plan);
  m.block_bytes = block_bytes(engine, generator, plan);
  m.budget = budget_of(engine, plan, m);
  const std::int64_t left = std::max<std::int64_t>(m.budget - m.weights - m.activations, 0);
  m.blocks = m.block_bytes > 0 ? left / m.block_bytes : 0;
  m.cache = checked_mul(m.blocks, m.block_bytes);
  m.blocks_needed = ceil_div(engine.model_length, engine.block_tokens);
  if (engine.sleep_level == 0) m.asleep = m.budget;
  return m;
}

double least_utilization(const RolloutEngine& engine, const EngineMemory& memory,
                         const Plan& generation) {
  const std::int64_t profiled =
      engine.engine->share_is_static
          ? 0
          : memory.activations - memory.outside + engine.engine->library_bytes;
  const std::int64_t before = checked_add(memory.weights, profiled);
  const std::int64_t cache = checked_mul(memory.blocks_needed, memory.block_bytes);
  const std::int64_t usable = shared_bytes(engine, generation, memory);
  const bool of_free = engine.engine->share_is_of_free;
  const auto whole =
      static_cast<double>(std::max<std::int64_t>(usable - (of_free ? before : 0), 1));
  const auto bytes = static_cast<double>(of_free ? cache : checked_add(before, cache));
  return std::ceil(bytes / whole * 100) / 100;
}

}  // namespace shardplan
