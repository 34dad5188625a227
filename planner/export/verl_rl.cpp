// A job of several models as a configuration over verl's own (0.8: verl/trainer/config/
// ppo_trainer.yaml and ppo_megatron_trainer.yaml), for `verl.trainer.main_ppo --config-name`.
#include "export/verl_rl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "export/trainer_file.h"
#include "export/verl_async.h"
#include "export/verl_workers.h"
#include "export/yaml_text.h"
#include "frameworks/registry.h"
#include "options/tables.h"
#include "save/checkpointing.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

class VerlRlFile {
 public:
  VerlRlFile(const Json& asked, const Job& job)
      : asked_(asked),
        work_(asked.at("workload")),
        models_(work_.value("models", Json::object())),
        rlhf_(*job.rlhf),
        plan_(job.plan) {}

  Json write() {
    const std::string of_all = asynchronous() ? "fully_async_" : "";
    file_["hydra"]["searchpath"] = Json{"pkg://verl.trainer.config"};
    if (asynchronous())
      file_["hydra"]["searchpath"].push_back("pkg://verl.experimental.fully_async_policy.config");
    file_["defaults"] =
        Json{of_all + (megatron() ? "ppo_megatron_trainer" : "ppo_trainer"), "_self_"};
    algorithm();
    data();
    model();
    actor();
    batches();
    scoring();
    loss();
    reference();
    if (rlhf_.description().has_critic) critic();
    reward();
    rollout();
    file_["trainer"] =
        Json{{"nnodes", plan_.cluster.nodes}, {"n_gpus_per_node", plan_.cluster.gpus_per_node}};
    return std::move(file_);
  }

 private:
  bool asynchronous() const { return rlhf_.rollout && verl_is_asynchronous(*rlhf_.rollout); }
  bool megatron() const { return traits_of(plan_).split == SplitStyle::megatron; }
  Json& worker(const char* name) { return file_["actor_rollout_ref"][name]; }
  std::int64_t of_work(const char* key, std::int64_t otherwise) const {
    return work_.value(key, otherwise);
  }
  Json role(const char* name) const { return models_.value(name, Json::object()); }

  void algorithm() {
    constexpr auto kSaid = std::to_array<std::string_view>(
        {"kind", "algorithm", "micro_batch", "gradient_accumulation", "method", "lora",
         "prompt_length", "new_tokens", "generation_batch", "token_budget", "scoring_tokens",
         "scoring_batch", "entropy", "scoring_entropy", "reference", "rewards", "models",
         "rollout"});
    const std::string_view name = rlhf_.description().name;
    if (name != "grpo" && name != "ppo")
      refuse_export("workload.algorithm", fmt::format("verl's main_ppo does not run {}", name),
                    "grpo or ppo");
    refuse_more(work_, "workload", kSaid, "is no key of verl's configurations");
    file_["algorithm"] = Json{{"adv_estimator", name == "ppo" ? "gae" : "grpo"}};
  }

  /// Prompts of all GPUs, each of which has as many answers as the engine gives.
  std::int64_t prompts(std::int64_t sequences_per_rank, const char* key) const {
    const std::int64_t all = checked_mul(sequences_per_rank, plan_.data_ranks());
    const std::int64_t answers = rlhf_.rollout ? rlhf_.rollout->completions : 1;
    if (all % answers != 0)
      refuse_export(
          key, say("{} sequences are no multiple of {} answers", all, answers),
          fmt::format("{} or {} on all GPUs", all - all % answers, round_up(all, answers)));
    return all / answers;
  }
  std::int64_t sequences_of_step() const {
    return checked_mul(of_work("micro_batch", 1), of_work("gradient_accumulation", 1));
  }

  /// Of an iteration: between two hand-overs.
  std::int64_t generated_prompts() const {
    return prompts(of_work("generation_batch", sequences_of_step()), "workload.generation_batch");
  }

  /// The asynchronous trainer generates prompt by prompt (fully_async_rollouter.py).
  void data() {
    file_["data"] = Json{{"max_prompt_length", of_work("prompt_length", 0)},
                         {"max_response_length", of_work("new_tokens", 0)},
                         {"train_batch_size", asynchronous() ? 0 : generated_prompts()}};
    if (asynchronous()) file_["data"]["gen_batch_size"] = 1;
  }

  void model() {
    Json& own = worker("model");
    own["path"] = named_model(asked_, "verl");
    if (!megatron()) own["enable_gradient_checkpointing"] = recomputes(checkpointing_json(plan_));
    if (megatron())
      refuse_flash_attn(plan_, "verl under Megatron-LM");
    else if (!plan_.calls_flash_attn())
      own["override_config"] = Json{{"attn_implementation", attention_word(plan_)}};
    if (plan_.loss == LossKind::fused_linear) own["use_fused_kernels"] = true;
    if (plan_.mlp_tiles > 0)
      refuse_export("mlp_tiles", "beside other models verl's tiles are not estimated", "0");
    if (plan_.kernels.any()) {
      if (!plan_.kernels.patches)
        refuse_export("kernels", "verl has all of Liger's or none", "liger");
      own["use_liger"] = true;
    }
    if (!plan_.workload.lora) return;
    const Lora& lora = *plan_.workload.lora;
    if (lora.base != Quantization::none)
      refuse_export("workload.lora.quantization", "verl quantizes no base", "none");
    own["lora_rank"] = lora.rank;
    const bool all = lora.targets == std::vector<std::string>{"all-linear"};
    own["target_modules"] = all ? Json("all-linear") : Json(lora.targets);
  }

  static bool recomputes(const Json& how) {
    if (how != "none" && how != "full")
      refuse_export("checkpointing", how.dump() + " is none of verl's", "none or full");
    return how == "full";
  }

  void actor() {
    Json& own = worker("actor");
    if (megatron()) {
      own["strategy"] = "megatron";
      own["megatron"] = verl_megatron_worker(plan_, parallel_of_actor());
      own["optim"]["clip_grad"] = plan_.gradient_clipping;
    } else {
      if (plan_.trainer->name != "verl")
        refuse_export("trainer", "the plan runs under another program", "verl");
      Json options;
      write_options(options, *traits_of(plan_).options.get(), plan_.framework);
      options["name"] = name_of(plan_.framework.kind);
      own["strategy"] = verl_strategy(options);
      check_verl_optimizer(plan_);
      own["fsdp_config"] = verl_fsdp_worker(options, plan_.precision.name);
      own["grad_clip"] = plan_.gradient_clipping;
      own["ulysses_sequence_parallel_size"] = plan_.parallel.sequence;
    }
    idle(own[megatron() ? "megatron" : "fsdp_config"], role("actor"));
  }

  /// Where a model that does not work leaves what it has.
  static void idle(Json& block, const Json& role) {
    const std::string where = role.value("idle", "gpu");
    block["param_offload"] = where == "parameters" || where == "host";
    block["optimizer_offload"] = where == "optimizer" || where == "host";
  }

  void batches() {
    Json& own = worker("actor");
    own["ppo_mini_batch_size"] = prompts(sequences_of_step(), "workload.micro_batch");
    const bool by_tokens = work_.contains("token_budget");
    own["use_dynamic_bsz"] = by_tokens;
    if (by_tokens)
      own["ppo_max_token_len_per_gpu"] = of_work("token_budget", 0);
    else
      own["ppo_micro_batch_size_per_gpu"] = of_work("micro_batch", 1);
  }

  /// The actor's old log-probabilities and the reference's come in passes alike.
  void scoring() {
    const bool by_tokens = work_.contains("scoring_tokens");
    for (const char* name : {"rollout", "ref"}) {
      Json& own = worker(name);
      own["log_prob_use_dynamic_bsz"] = by_tokens;
      if (by_tokens)
        own["log_prob_max_token_len_per_gpu"] = of_work("scoring_tokens", 0);
      else
        own["log_prob_micro_batch_size_per_gpu"] =
            of_work("scoring_batch", of_work("micro_batch", 1));
    }
  }

  void loss() {
    const std::string entropy = work_.value("entropy", "none");
    const std::string scored = work_.value("scoring_entropy", entropy);
    worker("actor")["calculate_entropy"] = entropy != "none";
    if (!megatron()) worker("actor")["use_torch_compile"] = scored != "eager";
  }

  void reference() {
    const bool none = rlhf_.reference == ReferenceModel::none;
    worker("actor")["use_kl_loss"] = !none;
    if (rlhf_.reference == ReferenceModel::precomputed)
      refuse_export("workload.reference", "verl's references score what is generated", "copy");
    if (rlhf_.reference != ReferenceModel::copy) return;
    const Json own = role("reference");
    if (megatron()) {
      Json& block = worker("ref")["megatron"] =
          verl_degrees(own.value("parallel", parallel_of_actor()));
      block["param_offload"] = own.value("idle", "gpu") == "host";
      return;
    }
    const Json framework = own.value("framework", Json::object());
    const bool waits = plan_.cluster.world() == 1 ? own.value("idle", "gpu") == "host"
                                                  : framework.value("cpu_offload", false);
    if (!waits)
      refuse_export("workload.models.reference", "verl keeps a reference's shards on the host",
                    "framework with cpu_offload true");
    worker("ref")["fsdp_config"] = worker_of(own);
    if (!framework.empty()) worker("ref")["strategy"] = verl_strategy(framework);
  }

  /// A frozen or a second model's FSDP: what it does not say is the actor's.
  Json worker_of(const Json& role) const {
    Json framework = role.value("framework", Json::object());
    if (framework.empty()) {
      write_options(framework, *traits_of(plan_).options.get(), plan_.framework);
      framework["name"] = name_of(plan_.framework.kind);
    }
    framework.erase("cpu_offload");
    return verl_fsdp_worker(framework, role.value("precision", plan_.precision.name));
  }

  void critic() {
    const Json own = role("critic");
    Json& block = file_["critic"];
    block["enable"] = true;
    block["model"]["path"] = path_of(own);
    block["strategy"] = megatron() ? "megatron" : verl_strategy(strategy_of(own));
    if (megatron()) {
      block["megatron"] = verl_degrees(own.value("parallel", parallel_of_actor()));
      idle(block["megatron"], own);
    } else {
      Json& model = block["model"];
      model["fsdp_config"] = worker_of(own);
      idle(model["fsdp_config"], own);
      model["enable_gradient_checkpointing"] =
          recomputes(own.value("checkpointing", checkpointing_json(plan_)));
      block["ulysses_sequence_parallel_size"] =
          own.value("parallel", Json::object()).value("sequence", plan_.parallel.sequence);
    }
    const std::int64_t budget = own.value("token_budget", of_work("token_budget", 0));
    block["use_dynamic_bsz"] = budget > 0;
    if (budget > 0)
      block["ppo_max_token_len_per_gpu"] = budget;
    else
      block["ppo_micro_batch_size_per_gpu"] =
          own.value("workload", Json::object()).value("micro_batch", of_work("micro_batch", 1));
  }

  Json strategy_of(const Json& role) const {
    return role.value("framework", Json{{"name", name_of(plan_.framework.kind)}});
  }
  Json parallel_of_actor() const { return asked_.value("parallel", Json::object()); }
  /// A model of its own, or the actor's.
  std::string path_of(const Json& role) const {
    return role.contains("model") ? named_model(role, "verl") : named_model(asked_, "verl");
  }

  /// In an engine of its own, or a worker like the reference.
  void reward() {
    const auto own = models_.find("reward");
    if (own == models_.end()) {
      if (rlhf_.description().needs_reward && work_.value("rewards", "model") != "function")
        refuse_export("workload.rewards", "a reward model that is not described",
                      "function, or models.reward");
      return;
    }
    Json& block = file_["reward_model"] = Json{{"enable", true}};
    block["model"]["path"] = path_of(*own);
    const auto engine = own->find("engine");
    block["use_reward_loop"] = engine != own->end();
    if (engine != own->end()) {
      block["rollout"] = verl_judge(*engine);
      return;
    }
    block["strategy"] = verl_strategy(strategy_of(*own));
    block["model"]["fsdp_config"] = worker_of(*own);
    if (const Json& micro = own->value("workload", Json::object()); micro.contains("micro_batch"))
      block["micro_batch_size_per_gpu"] = micro.at("micro_batch");
  }

  void rollout() {
    Json& own = worker("rollout");
    if (!rlhf_.rollout) {
      own["name"] = "hf";
      return;
    }
    own.update(
        verl_rollout(*rlhf_.rollout, of_work("prompt_length", 0) + of_work("new_tokens", 0)));
    if (!rlhf_.rollout->at().shares_gpus) own_gpus();
  }

  /// Its recipes that generate beside training: one batch behind, or as far as the fully
  /// asynchronous one is told.
  void own_gpus() {
    const RolloutEngine& engine = *rlhf_.rollout;
    if (!engine.gpus)
      refuse_export("workload.rollout.placement", "how many GPUs the engine has is not in the job",
                    "colocated, or rollout.gpus");
    if (engine.steps_off_policy < 1 && !engine.streams)
      refuse_export("workload.rollout.steps_off_policy",
                    "on GPUs of its own verl's engine is a step behind, or streams",
                    "at least 1, or streaming true");
    const Cluster& c = plan_.cluster;
    const std::int64_t machines =
        engine.same_machines ? c.nodes : ceil_div(*engine.gpus, c.gpus_per_node);
    if (*engine.gpus % machines != 0)
      refuse_export("workload.rollout.gpus", "verl's engine has as many GPUs of each machine",
                    fmt::format("{}", round_up(*engine.gpus, machines)));
    file_["actor_rollout_ref"]["hybrid_engine"] = false;
    file_["rollout"] = Json{{"nnodes", machines}, {"n_gpus_per_node", *engine.gpus / machines}};
    if (asynchronous())
      file_["async_training"] = verl_async_training(
          engine, generated_prompts(), prompts(sequences_of_step(), "workload.micro_batch"));
  }

  const Json& asked_;
  const Json work_, models_;
  const Rlhf& rlhf_;
  const Plan& plan_;
  Json file_ = Json::object();
};

}  // namespace

std::string verl_rl_yaml(const Json& asked, const Job& job, const Estimate& e) {
  const auto& rollout = job.rlhf->rollout;
  const char* program = rollout && verl_is_asynchronous(*rollout)
                            ? "verl.experimental.fully_async_policy.fully_async_main"
                        : rollout && rollout->runs_ahead()
                            ? "verl.experimental.one_step_off_policy.main_ppo"
                            : "verl.trainer.main_ppo";
  return header_comment(job, e) +
         fmt::format("# python3 -m {} --config-path=$PWD --config-name=verl \\\n", program) +
         "#     data.train_files=... data.val_files=...\n" +
         yaml_text(VerlRlFile(asked, job).write());
}

}  // namespace shardplan
