#include "lint/costs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "load/ds_config/schema.h"

namespace shardplan {
namespace {

using Candidates = std::vector<Json> (*)(const Model& model, const PricedJob& job);

std::int64_t hidden_squared(const Model& model) {
  return checked_mul(model.facts.hidden, model.facts.hidden);
}

/// HF Trainer's "auto" (transformers: integrations/deepspeed.py trainer_config_finalize).
std::vector<Json> bucket(const Model& model, const PricedJob&) {
  if (model.facts.hidden == 0) return {};
  const std::int64_t size = hidden_squared(model);
  return {size + size % 2};  // DeepSpeed halves it
}
std::vector<Json> prefetch(const Model& model, const PricedJob&) {
  if (model.facts.hidden == 0) return {};
  return {hidden_squared(model) * 9 / 10};
}
std::vector<Json> persistence(const Model& model, const PricedJob&) {
  if (model.facts.hidden == 0) return {};
  return {10 * model.facts.hidden};
}
std::vector<Json> zero(const Model&, const PricedJob&) {
  return {0};
}
std::vector<Json> off(const Model&, const PricedJob&) {
  return {false};
}
std::vector<Json> on(const Model&, const PricedJob&) {
  return {true};
}
std::vector<Json> sub_group(const Model&, const PricedJob&) {
  return {100'000'000, 20'000'000};
}
/// Elements of the largest tensor's part on one rank, rounded up to a million.
std::vector<Json> swap_buffer(const Model& model, const PricedJob& job) {
  std::int64_t largest = 0;
  for (const Parameter& p : model.parameters) largest = std::max(largest, p.numel);
  const std::int64_t ranks = job.job().plan.replicas();
  constexpr std::int64_t kMillion = 1'000'000;
  return {((largest + ranks - 1) / ranks / kMillion + 1) * kMillion};
}
std::vector<Json> none(const Model&, const PricedJob&) {
  return {};
}

struct MemoryKey {
  std::string_view path;
  Candidates candidates;
  bool block = false;  ///< priced as a whole
};

/// The keys that the memory model reads (core/frameworks/deepspeed/options.h).
constexpr std::array kMemoryKeys{
    MemoryKey{"zero_optimization.stage", none},
    MemoryKey{"zero_optimization.offload_optimizer", none, true},
    MemoryKey{"zero_optimization.offload_optimizer.ratio", none},
    MemoryKey{"zero_optimization.offload_optimizer.pin_memory", none},
    MemoryKey{"zero_optimization.offload_optimizer.buffer_count", none},
    MemoryKey{"zero_optimization.offload_param", none, true},
    MemoryKey{"zero_optimization.offload_param.pin_memory", none},
    MemoryKey{"zero_optimization.offload_param.buffer_count", none},
    MemoryKey{"zero_optimization.offload_param.buffer_size", swap_buffer},
    MemoryKey{"zero_optimization.offload_param.max_in_cpu", none},
    MemoryKey{"zero_optimization.reduce_bucket_size", bucket},
    MemoryKey{"zero_optimization.allgather_bucket_size", bucket},
    MemoryKey{"zero_optimization.overlap_comm", off},
    MemoryKey{"zero_optimization.contiguous_gradients", none},
    MemoryKey{"zero_optimization.reduce_scatter", none},
    MemoryKey{"zero_optimization.use_multi_rank_bucket_allreduce", on},
    MemoryKey{"zero_optimization.round_robin_gradients", none},
    MemoryKey{"zero_optimization.sub_group_size", sub_group},
    MemoryKey{"zero_optimization.stage3_prefetch_bucket_size", prefetch},
    MemoryKey{"zero_optimization.stage3_param_persistence_threshold", persistence},
    MemoryKey{"zero_optimization.stage3_model_persistence_threshold", none},
    MemoryKey{"zero_optimization.stage3_max_live_parameters", none},
    MemoryKey{"zero_optimization.stage3_max_reuse_distance", zero},
    MemoryKey{"zero_optimization.stage3_module_granularity_threshold", none},
    MemoryKey{"zero_optimization.stage3_allgather_sequential", none},
    MemoryKey{"zero_optimization.stage3_use_all_reduce_for_fetch_params", none},
    MemoryKey{"zero_optimization.memory_efficient_linear", on},
    MemoryKey{"zero_optimization.zero_hpz_partition_size", none},
    MemoryKey{"zero_optimization.zero_quantized_weights", none},
    MemoryKey{"zero_optimization.zero_quantized_nontrainable_weights", none},
    MemoryKey{"zero_optimization.zero_quantized_gradients", none},
    MemoryKey{"zero_optimization.zeropp_loco_param", none, true},
    MemoryKey{"zero_optimization.mics_shard_size", none},
    MemoryKey{"zero_optimization.mics_hierarchical_params_gather", none},
    MemoryKey{"fp16", none, true},
    MemoryKey{"bf16", none, true},
    MemoryKey{"bf16.check_grad_overflow", none},
    MemoryKey{"bf16.bf16_master_weights_and_grads", none},
    MemoryKey{"bf16.bf16_optimizer_states", none},
    MemoryKey{"fp16.fp16_master_weights_and_grads", none},
    MemoryKey{"torch_autocast", none, true},
    MemoryKey{"data_types.grad_accum_dtype", none},
    MemoryKey{"communication_data_type", none},
    MemoryKey{"seq_parallel_communication_data_type", none},
    MemoryKey{"optimizer.type", none},
    MemoryKey{"optimizer.params.torch_adam", none},
    MemoryKey{"optimizer.params.fp32_optimizer_states", none},
    MemoryKey{"tensor_parallel", none, true},
    MemoryKey{"sequence_parallel_size", none},
    MemoryKey{"expert_parallel", none, true},
    MemoryKey{"train_batch_size", none},
    MemoryKey{"train_micro_batch_size_per_gpu", none},
    MemoryKey{"gradient_accumulation_steps", none},
    MemoryKey{"gradient_clipping", none},
};

/// Of the GPU: less is not worth a change.
constexpr double kWorthwhile = 0.01;
/// A better value may take this much longer; while the job does not fit, it may take any time.
constexpr double kSamePace = 1.02;

bool acts(const DsNode& key, const DsValues& values) {
  return key.known_at(values.version()) && key.acts_at(values.stage());
}

std::optional<BetterValue> best_of(const MemoryKey& key, const PricedJob& job, const Json& now) {
  std::optional<BetterValue> best;
  for (Json& value : key.candidates(job.job().model, job)) {
    if (value == now) continue;
    const auto changed = job.with({set_key(std::string(key.path), value)});
    if (!changed) continue;
    const PriceDelta change = difference(changed->price, job.price());
    const bool saves =
        static_cast<double>(-change.gpu) >= kWorthwhile * static_cast<double>(job.price().gpu);
    if (!saves || (job.price().fits && change.pace > kSamePace)) continue;
    if (!best || change.gpu < best->change.gpu)
      best = BetterValue{std::move(value), change, changed->price.fits};
  }
  return best;
}

/// What a block is about, in a word.
Json shown(const Json& value) {
  if (!value.is_object()) return value;
  for (const char* subject : {"device", "autotp_size", "autoep_size", "enabled"})
    if (const auto key = value.find(subject); key != value.end()) return *key;
  return value;
}

/// What holds where the file is silent; null where that is nothing.
Json default_of(const DsNode& node, const DsValues& values) {
  if (node.path == "zero_optimization.overlap_comm") return values.stage() == 3;
  return node.default_at(values.version());
}

bool switched_off(const Json& value) {
  const Json word = shown(value);
  return word == "none" || (value.is_object() && word == false);
}

}  // namespace

PriceDelta difference(const Price& with, const Price& without) {
  const bool timed = with.seconds_per_token > 0 && without.seconds_per_token > 0;
  return {.gpu = with.gpu - without.gpu,
          .host = with.host - without.host,
          .nvme = with.nvme - without.nvme,
          .pace = timed ? with.seconds_per_token / without.seconds_per_token : 1};
}

std::vector<KeyCost> price_keys(const PricedJob& job, const DsValues& values) {
  std::vector<KeyCost> costs;
  for (const MemoryKey& key : kMemoryKeys) {
    const DsNode* node = ds_schema().find(key.path);
    if (node == nullptr || !acts(*node, values)) continue;
    const Json* given = values.given(key.path);
    if (given != nullptr && switched_off(*given)) continue;
    KeyCost cost;
    cost.path = key.path;
    cost.given = given != nullptr;
    cost.without = key.block ? Json() : default_of(*node, values);
    cost.value = given != nullptr ? shown(*given) : cost.without;
    if (cost.given) {
      if (const auto without = job.with({remove_key(cost.path)}, &cost.problem))
        cost.costs = difference(job.price(), without->price);
    }
    cost.better = best_of(key, job, cost.value);
    if (cost.given || cost.better) costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace shardplan
