// A plan as a recipe of NeMo RL (7ea279abf): what differs from one of its own files, which the
// recipe names under `defaults`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "export/yaml_text.h"
#include "frameworks/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "save/checkpointing.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

struct NemoRlAlgorithm {
  std::string_view name;  ///< in jobs
  std::string_view block, file;
};
constexpr std::array kNemoRlAlgorithms{
    NemoRlAlgorithm{"grpo", "grpo", "grpo_math_1B.yaml"}, NemoRlAlgorithm{"dpo", "dpo", "dpo.yaml"},
    NemoRlAlgorithm{"reward", "rm", "rm.yaml"}, NemoRlAlgorithm{"", "sft", "sft.yaml"}};

constexpr const char* kNoKey = "is no key of NeMo RL's recipes";

class NemoRlFile {
 public:
  NemoRlFile(const Json& asked, const Job& job)
      : asked_(asked), work_(asked.value("workload", Json::object())), job_(job), plan_(job.plan) {}

  Json write() {
    const std::string name = job_.rlhf ? std::string(job_.rlhf->description().name) : "";
    const auto own = std::ranges::find(kNemoRlAlgorithms, name, &NemoRlAlgorithm::name);
    if (own == kNemoRlAlgorithms.end())
      refuse_export("workload.algorithm", fmt::format("NeMo RL's recipes do not tell {}", name),
                    "grpo, dpo, reward, or kind train");
    file_["defaults"] = own->file;
    file_[std::string(own->block)] = Json::object();
    file_["cluster"] =
        Json{{"num_nodes", plan_.cluster.nodes}, {"gpus_per_node", plan_.cluster.gpus_per_node}};
    policy_["model_name"] = named_model(asked_, "NeMo RL");
    policy_["max_grad_norm"] = plan_.gradient_clipping;
    traits_of(plan_).split == SplitStyle::megatron ? megatron() : shards();
    if (name.empty())
      supervised();
    else
      several(name);
    file_["policy"] = std::move(policy_);
    return std::move(file_);
  }

 private:
  std::int64_t ranks() const {
    const Parallel& p = plan_.parallel;
    return plan_.cluster.nodes * plan_.cluster.gpus_per_node /
           (p.tensor * p.pipeline * p.context * p.sequence);
  }
  std::int64_t of_work(const char* key, std::int64_t otherwise) const {
    return work_.value(key, otherwise);
  }

  Json options() const {
    Json own;
    write_options(own, *traits_of(plan_).options.get(), plan_.framework);
    return own;
  }

  void shards() {
    if (plan_.trainer->name != "nemo_rl")
      refuse_export("trainer", "the plan runs under another program", "nemo_rl");
    const Json own = options();
    const bool usual = name_of(plan_.framework.kind) == std::string_view("fsdp2") &&
                       own.value("reduce_dtype", "") == "fp32" &&
                       own.value("sync_each_batch", true);
    if (!usual)
      refuse_export("framework", "NeMo RL shards all, and reduces gradients of each batch in fp32",
                    "fsdp2 with reduce_dtype fp32");
    const bool reshards = own.value("reshard_after_forward", true);
    if (!reshards && plan_.parallel.expert == 1)
      refuse_export("framework.reshard_after_forward", "NeMo RL reshards without experts", "true");
    Json block{{"_v2", true}, {"enabled", true}};
    block["cpu_offload"] = own.value("cpu_offload", false);
    if (const std::int64_t size = own.value("hybrid_shard_size", std::int64_t{0}); size > 0)
      block["dp_replicate_size"] = ranks() * plan_.parallel.context / size;
    block["tensor_parallel_size"] = plan_.parallel.tensor;
    block["context_parallel_size"] = plan_.parallel.context;
    if (plan_.parallel.expert > 1) {
      block["expert_parallel_size"] = plan_.parallel.expert;
      block["moe_parallelizer"] = Json{{"reshard_after_forward", reshards}};
    }
    block["sequence_parallel"] = plan_.parallel.sequence_parallel && plan_.parallel.tensor > 1;
    if (plan_.parallel.pipeline > 1 || plan_.parallel.sequence > 1)
      refuse_export("parallel", "NeMo RL's FSDP2 has no such degree", "tensor, context, expert");
    block["activation_checkpointing"] = recomputes({"none", "full"}) != "none";
    if (plan_.workload.lora) adapters(block, *plan_.workload.lora);
    if (plan_.kernels.any()) {
      if (!plan_.kernels.patches)
        refuse_export("kernels", "NeMo RL has all of Liger's or none", "liger");
      block["automodel_kwargs"]["use_liger_kernel"] = true;
    }
    if (const std::string_view word = attention_word(plan_); word != "sdpa")
      block["automodel_kwargs"]["attn_implementation"] = word;
    policy_["dtensor_cfg"] = std::move(block);
    policy_["megatron_cfg"] = Json{{"enabled", false}};
    torch_optimizer();
    precision("-autocast");
  }

  void torch_optimizer() {
    const std::string_view name = plan_.optimizer.kind->name;
    const std::string_view how = name_of(plan_.optimizer.implementation);
    if (name != "adamw" && name != "adam")
      refuse_export("optimizer", fmt::format("{} ({}) is not written", name, how), "adamw or adam");
    policy_["optimizer"] =
        Json{{"name", name == "adam" ? "torch.optim.Adam" : "torch.optim.AdamW"},
             {"kwargs", {{"foreach", how == "foreach"}, {"fused", how == "fused"}}}};
  }

  void adapters(Json& block, const Lora& lora) const {
    if (lora.base != Quantization::none || lora.magnitudes || lora.rank_stabilized ||
        !lora.saved.empty())
      refuse_export("workload.lora",
                    "quantized bases, DoRA, rsLoRA and modules_to_save are not "
                    "written",
                    "plain LoRA");
    const bool all = lora.targets == std::vector<std::string>{"all-linear"};
    block["lora_cfg"] = Json{{"enabled", true},
                             {"dim", lora.rank},
                             {"match_all_linear", all},
                             {"target_modules", all ? Json::array() : Json(lora.targets)}};
  }

  void megatron() {
    constexpr auto kSaid =
        std::to_array<std::string_view>({"name", "distributed_optimizer", "overlap_grad_reduce",
                                         "overlap_param_gather", "grad_reduce_dtype"});
    refuse_more(asked_.value("framework", Json()), "framework", kSaid, kNoKey);
    const Json own = options();
    const Parallel& p = plan_.parallel;
    if (p.virtual_pipeline > 1 || !p.stage_layers.empty())
      refuse_export("parallel", "interleaved and uneven stages are not written", "even stages");
    if (plan_.workload.lora)
      refuse_export("workload.lora", "NeMo RL's adapters under Megatron-LM are not written",
                    "method full");
    const std::string how = recomputes({"none", "full", "selective"});
    Json block{{"enabled", true}, {"activation_checkpointing", how != "none"}};
    if (how != "none") block["recompute_granularity"] = how;
    block["tensor_model_parallel_size"] = p.tensor;
    block["pipeline_model_parallel_size"] = p.pipeline;
    block["context_parallel_size"] = p.context;
    block["expert_model_parallel_size"] = p.expert;
    if (p.expert > 1)
      block["expert_tensor_parallel_size"] = std::max<std::int64_t>(1, p.expert_tensor);
    block["sequence_parallel"] = p.sequence_parallel && p.tensor > 1;
    block["optimizer"] =
        Json{{"optimizer", "adam"},
             {"use_distributed_optimizer", own.value("distributed_optimizer", true)}};
    block["distributed_data_parallel_config"] =
        Json{{"grad_reduce_in_fp32", own.value("grad_reduce_dtype", "fp32") == "fp32"},
             {"overlap_grad_reduce", own.value("overlap_grad_reduce", true)},
             {"overlap_param_gather", own.value("overlap_param_gather", true)}};
    refuse_flash_attn(plan_, "NeMo RL under Megatron-LM");
    policy_["dtensor_cfg"] = Json{{"enabled", false}};
    policy_["megatron_cfg"] = std::move(block);
    if (plan_.optimizer.kind->name != std::string_view("adamw"))
      refuse_export("optimizer", "NeMo RL has Adam under Megatron-LM", "adamw");
    precision("-master");
  }

  void precision(std::string_view style) {
    const std::string& name = plan_.precision.name;
    for (const auto& [half, word] : {std::pair{"bf16", "bfloat16"}, std::pair{"fp16", "float16"}})
      if (name == half + std::string(style)) policy_["precision"] = word;
    if (name == "fp32") policy_["precision"] = "float32";
    if (!policy_.contains("precision"))
      refuse_export("precision", fmt::format("{} is none of NeMo RL's", name),
                    fmt::format("bf16{}", style));
  }

  std::string recomputes(std::initializer_list<std::string_view> known) const {
    const Json how = checkpointing_json(plan_);
    if (how.is_string() && std::ranges::find(known, how.get<std::string>()) != known.end())
      return how;
    refuse_export("checkpointing", how.dump() + " is none of NeMo RL's", "none or full");
  }

  void batches(std::int64_t micro, std::int64_t length) {
    policy_["train_micro_batch_size"] = micro;
    policy_["train_global_batch_size"] =
        checked_mul(checked_mul(micro, ranks()), of_work("gradient_accumulation", 1));
    policy_["max_total_sequence_length"] = length;
    policy_["sequence_packing"] = Json{{"enabled", false}};
    policy_["dynamic_batching"] = Json{{"enabled", false}};
  }

  void supervised() {
    const Workload& w = plan_.workload;
    batches(w.micro_batch, w.sequence_length);
    policy_["train_global_batch_size"] =
        checked_mul(checked_mul(w.micro_batch, ranks()), w.gradient_accumulation);
    if (!w.packing) return;
    if (w.micro_batch > 1) refuse_export("workload.micro_batch", "NeMo RL packs into one row", "1");
    policy_["sequence_packing"] = Json{{"enabled", true}, {"train_mb_tokens", w.sequence_length}};
  }

  void several(const std::string& name) {
    constexpr auto kSaid = std::to_array<std::string_view>(
        {"kind", "algorithm", "micro_batch", "gradient_accumulation", "method", "lora",
         "sequence_length", "prompt_length", "new_tokens", "generation_batch", "token_budget",
         "scoring_tokens", "scoring_batch", "reference", "models", "rollout"});
    refuse_more(work_, "workload", kSaid, kNoKey);
    const std::int64_t micro = of_work("micro_batch", 1);
    const bool generates = job_.rlhf->description().generates;
    const std::int64_t new_tokens = of_work("new_tokens", 0);
    const std::int64_t length =
        generates ? of_work("prompt_length", 0) + new_tokens : of_work("sequence_length", 0);
    batches(micro, length);
    if (generates) generation(new_tokens);
    reference(name);
  }

  /// Its weights wait on the host, or it is the base of adapters, or there is none.
  void reference(const std::string& name) {
    const bool none = job_.rlhf->reference == ReferenceModel::none;
    if (name == "grpo") file_["loss_fn"] = Json{{"reference_policy_kl_penalty", none ? 0.0 : 0.01}};
    Json wanted = Json::object();
    if (job_.rlhf->reference == ReferenceModel::copy) wanted["reference"] = Json{{"idle", "host"}};
    if (name == "grpo" && shares_gpus()) wanted["actor"] = Json{{"idle", "host"}};
    if (job_.rlhf->reference == ReferenceModel::precomputed ||
        work_.value("models", Json::object()) != wanted)
      refuse_export("workload.models", "NeMo RL keeps models on the host that do not work",
                    wanted.dump());
  }

  bool shares_gpus() const { return job_.rlhf->rollout->at().shares_gpus; }

  /// grpo.py, setup: an engine of its own takes whole machines of the cluster, or of one machine
  /// some GPUs.
  Json placement(const Json& rollout) {
    if (shares_gpus()) return Json{{"enabled", true}};
    const Cluster& c = plan_.cluster;
    if (!rollout.contains("gpus"))
      refuse_export("workload.rollout.placement", "how many GPUs the engine has is not in the job",
                    "colocated, or rollout.gpus");
    const auto gpus = rollout.at("gpus").get<std::int64_t>();
    const bool one = rollout.value("same_machines", false);
    if (one ? c.nodes > 1 : gpus % c.gpus_per_node != 0)
      refuse_export("workload.rollout.gpus", "NeMo RL divides one machine, or takes whole ones",
                    fmt::format("{}", round_up(gpus, c.gpus_per_node)));
    const std::int64_t machines = one ? 1 : gpus / c.gpus_per_node;
    if (one)
      file_["cluster"]["gpus_per_node"] = c.gpus_per_node + gpus;
    else
      file_["cluster"]["num_nodes"] = c.nodes + machines;
    return Json{
        {"enabled", false},
        {"resources", {{"num_nodes", machines}, {"gpus_per_node", one ? gpus : c.gpus_per_node}}}};
  }

  void check_sleep(const Json& rollout, int level, const char* why) const {
    const int usual = shares_gpus() ? level : 0;
    if (rollout.value("sleep_level", 0) != usual)
      refuse_export("workload.rollout.sleep_level", why, fmt::format("{}", usual));
  }

  void generation(std::int64_t new_tokens) {
    const Json rollout = work_.value("rollout", Json());
    if (!rollout.is_object())
      refuse_export("workload.rollout", "NeMo RL generates in an engine", "vllm or sglang");
    const std::int64_t answers = rollout.value("completions", std::int64_t{1});
    const std::int64_t all =
        checked_mul(of_work("generation_batch",
                            of_work("micro_batch", 1) * of_work("gradient_accumulation", 1)),
                    ranks());
    if (all % answers != 0)
      refuse_export(
          "workload.generation_batch",
          fmt::format("{} sequences are no multiple of {} answers", all, answers),
          fmt::format("{} or {} on all GPUs", all - all % answers, round_up(all, answers)));
    file_["grpo"] =
        Json{{"num_prompts_per_step", all / answers}, {"num_generations_per_prompt", answers}};
    budgets();
    Json block{{"backend", rollout.value("engine", "vllm")}, {"max_new_tokens", new_tokens}};
    block["colocated"] = placement(rollout);
    if (block["backend"] == "vllm")
      vllm(block, rollout);
    else
      sglang(block, rollout);
    if (const std::int64_t behind = job_.rlhf->rollout->steps_off_policy; behind > 0) {
      file_["grpo"]["async_grpo"] = Json{{"enabled", true},
                                         {"max_trajectory_age_steps", behind},
                                         {"in_flight_weight_updates", behind > 1}};
      if (block["backend"] == "vllm") block["vllm_cfg"]["async_engine"] = true;
    }
    policy_["generation"] = std::move(block);
    if (const std::int64_t buffer = rollout.value("weight_bucket", std::int64_t{0}); buffer > 0)
      policy_["refit_buffer_size_gb"] =
          static_cast<double>(buffer) / static_cast<double>(std::int64_t{1} << 30);
  }

  void budgets() {
    const std::int64_t context = plan_.parallel.context;
    const bool packs = work_.contains("token_budget");
    if (packs != work_.contains("scoring_tokens"))
      refuse_export("workload.token_budget", "NeMo RL has budgets of both passes or of none",
                    "token_budget beside scoring_tokens");
    if (packs)
      policy_["sequence_packing"] =
          Json{{"enabled", true},
               {"train_mb_tokens", of_work("token_budget", 0) * context},
               {"logprob_mb_tokens", of_work("scoring_tokens", 0) * context}};
    else
      policy_["logprob_batch_size"] = of_work("scoring_batch", of_work("micro_batch", 1));
  }

  /// Of `fields` those that the engine's block has, by their names there.
  static void rename(Json& block, const Json& rollout,
                     std::initializer_list<std::pair<const char*, const char*>> fields) {
    for (const auto& [field, key] : fields)
      if (rollout.contains(field)) block[key] = rollout.at(field);
  }

  void vllm(Json& block, const Json& rollout) const {
    constexpr auto kSaid = std::to_array<std::string_view>(
        {"engine", "placement", "gpus", "same_machines", "steps_off_policy",
         "gpu_memory_utilization", "tensor_parallel", "expert_parallel", "max_model_length",
         "max_num_batched_tokens", "max_num_seqs", "block_size", "sleep_level", "cuda_graphs",
         "prefix_caching", "completions", "weight_bucket", "log_probabilities",
         "async_scheduling"});
    refuse_more(rollout, "workload.rollout", kSaid, kNoKey);
    check_sleep(rollout, 1, "under NeMo RL vLLM sleeps at level 1");
    Json& own = block["vllm_cfg"] = Json::object();
    rename(own, rollout,
           {{"gpu_memory_utilization", "gpu_memory_utilization"},
            {"tensor_parallel", "tensor_parallel_size"},
            {"expert_parallel", "expert_parallel_size"},
            {"max_model_length", "max_model_len"},
            {"prefix_caching", "enable_prefix_caching"}});
    own["enforce_eager"] = !rollout.value("cuda_graphs", true);
    Json& more = block["vllm_kwargs"] = Json::object();
    rename(more, rollout,
           {{"max_num_batched_tokens", "max_num_batched_tokens"},
            {"max_num_seqs", "max_num_seqs"},
            {"block_size", "block_size"}});
  }

  void sglang(Json& block, const Json& rollout) const {
    constexpr auto kSaid = std::to_array<std::string_view>(
        {"engine", "placement", "gpus", "same_machines", "steps_off_policy",
         "gpu_memory_utilization", "tensor_parallel", "max_model_length", "max_num_seqs",
         "sleep_level", "cuda_graphs", "completions", "weight_bucket"});
    refuse_more(rollout, "workload.rollout", kSaid, kNoKey);
    check_sleep(rollout, 2, "under NeMo RL SGLang gives up all that it has");
    Json& own = block["sglang_cfg"] = Json::object();
    rename(own, rollout,
           {{"gpu_memory_utilization", "mem_fraction_static"},
            {"tensor_parallel", "tp_size"},
            {"max_model_length", "context_length"},
            {"max_num_seqs", "max_running_requests"}});
    own["disable_cuda_graph"] = !rollout.value("cuda_graphs", true);
  }

  const Json& asked_;
  const Json work_;
  const Job& job_;
  const Plan& plan_;
  Json file_ = Json::object(), policy_ = Json::object();
};

std::string nemo_rl_yaml(const Json& asked, const Job& job, const Estimate& e) {
  const Json file = NemoRlFile(asked, job).write();
  return header_comment(job, e) +
         fmt::format("# It goes beside NeMo RL's examples/configs/{}.\n",
                     file.at("defaults").get<std::string>()) +
         yaml_text(file);
}

}  // namespace

const ExportFormat kNemoRlFormat{"nemo_rl", "nemo_rl.yaml", nemo_rl_yaml, true, true};

}  // namespace shardplan
