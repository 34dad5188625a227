// verl 0.8: verl/trainer/config/engine/fsdp.yaml and megatron.yaml, rollout/rollout.yaml.
#include "export/verl_workers.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "export/trainer_file.h"
#include "frameworks/registry.h"
#include "import/kinds/verl_degrees.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "options/tables.h"
#include "save/checkpointing.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

std::pair<std::string, std::string> kept_and_computed(std::string_view precision) {
  if (precision == "fp32") return {"fp32", "float32"};
  if (precision == "bf16-autocast") return {"fp32", "bfloat16"};
  if (precision == "fp16-autocast") return {"fp32", "float16"};
  if (precision == "bf16-pure") return {"bfloat16", "bfloat16"};
  refuse_export("precision", fmt::format("{} is none of verl's", precision),
                "bf16-autocast, fp16-autocast, bf16-pure or fp32");
}

/// Of a block with the words of verl's rollouts.
Json engine_keys(std::string_view name, double share, std::int64_t degree, bool graphs) {
  return Json{{"name", name},
              {"gpu_memory_utilization", share},
              {"tensor_model_parallel_size", degree},
              {"enforce_eager", !graphs}};
}

}  // namespace

void check_verl_optimizer(const Plan& plan) {
  const bool adamw = plan.optimizer.kind->name == std::string_view("adamw") &&
                     name_of(plan.optimizer.implementation) == "foreach";
  if (!adamw) refuse_export("optimizer", "verl's workers have AdamW", "adamw, foreach");
}

std::string verl_strategy(const Json& framework) {
  const std::string name = framework.value("name", "");
  if (name == "fsdp1") return "fsdp";
  if (name == "fsdp2") return name;
  refuse_export("framework", fmt::format("verl's main_ppo does not run {}", name),
                "fsdp1, fsdp2 or megatron");
}

Json verl_fsdp_worker(const Json& framework, std::string_view precision) {
  const auto [kept, computed] = kept_and_computed(precision);
  Json block{{"model_dtype", kept}, {"dtype", computed}};
  if (const std::string reduced = framework.value("reduce_dtype", "fp32"); reduced != "fp32")
    block["mixed_precision"] = Json{{"param_dtype", computed}, {"reduce_dtype", reduced}};
  const std::string strategy = framework.value("sharding_strategy", "full_shard");
  if (strategy != "full_shard" && strategy != "shard_grad_op" && strategy != "hybrid_shard")
    refuse_export("framework.sharding_strategy", fmt::format("{} is none of verl's", strategy),
                  "full_shard, shard_grad_op or hybrid_shard");
  block["reshard_after_forward"] =
      strategy != "shard_grad_op" && framework.value("reshard_after_forward", true);
  if (const std::int64_t size = framework.value("hybrid_shard_size", std::int64_t{0}); size > 0)
    block["fsdp_size"] = size;
  if (framework.value("cpu_offload", false)) {
    if (framework.value("name", "") == "fsdp1")
      refuse_export("framework.cpu_offload", "verl's FSDP1 keeps what trains on the GPU", "false");
    block["offload_policy"] = true;
  }
  for (const char* key : {"use_orig_params", "forward_prefetch"})
    if (framework.value(key, false)) block[key] = true;
  return block;
}

Json verl_megatron_worker(const Plan& plan, const Json& parallel) {
  const MegatronOptions& options = plan.framework.megatron;
  if (options.overlap_grad_reduce || options.overlap_param_gather)
    refuse_export("framework.overlap_grad_reduce", "verl overlaps neither reductions nor gathers",
                  "overlap_grad_reduce and overlap_param_gather false");
  if (plan.workload.lora)
    refuse_export("workload.lora", "adapters under Megatron-LM are not written", "method full");
  if (plan.precision.name != "bf16-master")
    refuse_export("precision", fmt::format("{} is none of Megatron-LM's", plan.precision.name),
                  "bf16-master");
  Json block = verl_degrees(parallel);
  block["use_distributed_optimizer"] = options.distributed_optimizer;
  const Json how = checkpointing_json(plan);
  Json& more = block["override_transformer_config"] = Json::object();
  if (how == "selective") {
    more["recompute_granularity"] = "selective";
  } else if (how == "full") {
    more = Json{{"recompute_granularity", "full"},
                {"recompute_method", "uniform"},
                {"recompute_num_layers", 1}};
  } else if (how.is_object() && how.value("policy", "") == "blocks" && how.contains("count")) {
    more = Json{{"recompute_granularity", "full"},
                {"recompute_method", "block"},
                {"recompute_num_layers", how.at("count")}};
  } else if (how != "none") {
    refuse_export("checkpointing", how.dump() + " is none of Megatron-LM's",
                  "none, selective, full or blocks by count");
  }
  return block;
}

Json verl_degrees(const Json& parallel) {
  Json block = Json::object();
  for (const auto& [name, key] : importing::verl::kMegatronDegrees)
    block[key] = parallel.value(name, std::int64_t{1});
  if (parallel.contains("expert_tensor"))
    block["expert_tensor_parallel_size"] = parallel.at("expert_tensor");
  block["sequence_parallel"] = parallel.value("sequence_parallel", false);
  for (const char* uneven : {"stage_layers", "balance", "sequence"})
    if (parallel.contains(uneven))
      refuse_export(fmt::format("parallel.{}", uneven), "is not written for verl",
                    "even stages, without Ulysses");
  return block;
}

Json verl_rollout(const RolloutEngine& engine, std::int64_t sequence) {
  if (engine.engine->name != "vllm" && engine.engine->name != "sglang")
    refuse_export("workload.rollout.engine", fmt::format("verl has no {}", engine.engine->name),
                  "vllm or sglang");
  if (engine.block_tokens != engine.engine->block_tokens)
    refuse_export("workload.rollout.block_size", "verl leaves it to the engine",
                  fmt::format("{}", engine.engine->block_tokens));
  const std::int64_t asleep = engine.layered_summon ? 1 : 2;
  if (engine.sleep_level != 0 && engine.sleep_level != asleep)
    refuse_export("workload.rollout.sleep_level",
                  "verl's engines drop their weights, or with layered_summon move them to the host",
                  fmt::format("{}", asleep));
  constexpr std::int64_t kMebi = std::int64_t{1} << 20;
  if (engine.weight_bucket % kMebi != 0 || engine.weight_bucket == 0)
    refuse_export("workload.rollout.weight_bucket", "verl counts it in whole MiB, at least one",
                  "2147483648");
  if (engine.answers_in_work > 0 && engine.at().shares_gpus)
    refuse_export("workload.rollout.answers_in_work",
                  "verl's engines on the trainer's GPUs end their answers first", "0");
  Json block = engine_keys(engine.engine->name, engine.utilization, engine.tensor_parallel,
                           engine.cuda_graphs);
  if (engine.expert_parallel > 1) block["expert_parallel_size"] = engine.expert_parallel;
  block["max_num_batched_tokens"] = engine.batched_tokens;
  block["max_num_seqs"] = engine.sequences;
  if (engine.model_length != sequence) block["max_model_len"] = engine.model_length;
  block["free_cache_engine"] = engine.sleep_level > 0;
  if (engine.layered_summon) block["layered_summon"] = true;
  block["n"] = engine.completions;
  block["enable_prefix_caching"] = engine.prefix_caching;
  if (engine.scores) block["calculate_log_probs"] = true;
  block["checkpoint_engine"] =
      Json{{"update_weights_bucket_megabytes", engine.weight_bucket / kMebi}};
  return block;
}

Json verl_judge(const Json& engine) {
  constexpr auto kSaid = std::to_array<std::string_view>(
      {"engine", "gpu_memory_utilization", "tensor_parallel", "cuda_graphs",
       "max_num_batched_tokens", "max_num_seqs", "max_model_length", "sleep_level"});
  refuse_more(engine, "workload.models.reward.engine", kSaid,
              "is no key of verl's judging engines");
  if (engine.value("sleep_level", 0) > 1)
    refuse_export("workload.models.reward.engine.sleep_level",
                  "verl's judging engine moves its weights to the host", "1");
  const std::string name = engine.value("engine", "vllm");
  Json block = engine_keys(name, engine.value("gpu_memory_utilization", 0.92),
                           engine.value("tensor_parallel", std::int64_t{1}),
                           engine.value("cuda_graphs", true));
  block["free_cache_engine"] = engine.value("sleep_level", 0) > 0;
  for (const auto& [field, key] :
       {std::pair{"max_num_batched_tokens", "max_num_batched_tokens"},
        std::pair{"max_num_seqs", "max_num_seqs"}, std::pair{"max_model_length", "max_model_len"}})
    if (engine.contains(field)) block[key] = engine.at(field);
  return block;
}

}  // namespace shardplan
