// A plan as OpenRLHF's command (3c3be623: openrlhf/cli): its programs of one model, PPO and GRPO.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "frameworks/deepspeed/ds_config.h"
#include "frameworks/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "rollout/engine.h"
#include "rollout/sizes.h"
#include "save/checkpointing.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What get_train_ds_config makes of a plan's arguments: the rest is DeepSpeed's own.
Plan said_by_arguments(const Plan& plan) {
  Plan said = plan;
  const DeepSpeedOptions& own = plan.framework.deepspeed;
  DeepSpeedOptions& o = said.framework.deepspeed = DeepSpeedOptions{};
  o.version = own.version;
  o.sequence_parallel = own.sequence_parallel;
  o.tensor_parallel = own.tensor_parallel;
  o.grad_accum_dtype = own.grad_accum_dtype;
  o.engine_dtype = own.engine_dtype;
  o.optimizer_type = own.optimizer_type;
  o.zero.stage = own.zero.stage;
  o.zero.hpz_partition_size = own.zero.hpz_partition_size;
  o.zero.overlap_comm = own.zero.overlap_comm || own.zero.stage == 3;
  if (own.zero.offload_optimizer.device == OffloadDevice::cpu)
    o.zero.offload_optimizer.device = OffloadDevice::cpu;
  return said;
}

void check_zero(const Plan& plan) {
  const Json own = ds_config_of(plan, Json(), {}).flatten();
  const Json said = ds_config_of(said_by_arguments(plan), Json(), {}).flatten();
  for (const auto& [key, value] : own.items())
    if (!said.contains(key) || said.at(key) != value)
      refuse_export(fmt::format("ds_config{}", key),
                    fmt::format("{} is no argument of OpenRLHF's", value.dump()),
                    said.contains(key) ? said.at(key).dump() : "none");
}

void check_openrlhf(const Plan& plan) {
  if (plan.trainer->name != "openrlhf")
    refuse_export("trainer", "the plan runs under another program", "openrlhf");
  if (!traits_of(plan).has_zero)
    refuse_export("framework", "OpenRLHF has each model in an engine of DeepSpeed's", "deepspeed");
  check_zero(plan);
  const std::string_view optimizer = plan.optimizer.kind->name;
  if (optimizer != "adamw" && optimizer != "muon")
    refuse_export("optimizer", fmt::format("{} is none of OpenRLHF's", optimizer), "adamw or muon");
  if (plan.precision.name != "bf16-master" && plan.precision.name != "fp16-master")
    refuse_export("precision", fmt::format("{} is none of OpenRLHF's", plan.precision.name),
                  "bf16-master or fp16-master");
  const Json how = checkpointing_json(plan);
  if (how != "none" && how != "full")
    refuse_export("checkpointing", how.dump() + " is none of OpenRLHF's", "none or full");
  const Parallel& p = plan.parallel;
  if (p.pipeline > 1 || p.context > 1 || p.expert > 1)
    refuse_export("parallel", "OpenRLHF has no such degree", "sequence, or tensor of one model");
  if (plan.workload.packing)
    refuse_export("workload.packing", "OpenRLHF joins no samples to one", "false");
  if (plan.compile || plan.mlp_tiles > 0)
    refuse_export(plan.compile ? "compile" : "mlp_tiles", "OpenRLHF has no argument for it",
                  "none");
  if (plan.kernels.any() && !plan.kernels.patches)
    refuse_export("kernels", "OpenRLHF has all of Liger's or none", "liger");
}

/// Arguments in their order, one a line.
class Arguments {
 public:
  explicit Arguments(std::string head) : text_(std::move(head)) {}
  void put(std::string_view name) { text_ += fmt::format(" \\\n   --{}", name); }
  template <typename T>
  void put(std::string_view name, const T& value) {
    text_ += fmt::format(" \\\n   --{} {}", name, value);
  }
  std::string take() { return text_ + " \\\n   \"$@\"\n"; }

 private:
  std::string text_;
};

/// Adapters and a base in 4 bits.
void put_adapters(Arguments& c, const Lora& lora) {
  const bool plain = !lora.magnitudes && !lora.rank_stabilized && lora.saved.empty() &&
                     lora.parameters.empty() && lora.whole.empty() && lora.rotation_block == 0;
  if (!plain)
    refuse_export("workload.lora", "OpenRLHF has peft's plain adapters alone", "rank and targets");
  const std::string_view base = name_of(lora.base);
  if (base != "none" && base != "nf4_double")
    refuse_export("workload.lora.quantization", fmt::format("{} is none of OpenRLHF's", base),
                  "none or nf4_double");
  c.put("ds.lora.rank", lora.rank);
  c.put("ds.lora.target_modules", fmt::format("{}", fmt::join(lora.targets, " ")));
  if (lora.dropout > 0) c.put("ds.lora.dropout", lora.dropout);
  if (base != "none") c.put("ds.load_in_4bit");
}

void put_engine(Arguments& c, const Plan& plan) {
  const DeepSpeedOptions& o = plan.framework.deepspeed;
  c.put("ds.zero_stage", o.zero.stage);
  c.put("ds.param_dtype", plan.precision.name.substr(0, 4));
  if (o.zero.offload_optimizer.device == OffloadDevice::cpu) c.put("ds.adam_offload");
  if (o.zero.hpz_partition_size > 1) c.put("ds.zpg", o.zero.hpz_partition_size);
  if (o.zero.overlap_comm && o.zero.stage != 3) c.put("ds.overlap_comm");
  if (o.grad_accum_dtype) c.put("ds.grad_accum_dtype", name_of(*o.grad_accum_dtype));
  if (plan.parallel.sequence > 1) c.put("ds.ring_attn_size", plan.parallel.sequence);
  // flash_attention_2 is OpenRLHF's own choice, and its lengths are what packing wants.
  if (plan.calls_flash_attn())
    c.put("ds.packing_samples");
  else
    c.put("ds.attn_implementation", attention_word(plan));
  if (plan.kernels.any()) c.put("ds.use_liger_kernel");
  if (plan.workload.lora) put_adapters(c, *plan.workload.lora);
}

/// "actor" or "model": the group of what trains.
void put_trained(Arguments& c, const Json& asked, const Plan& plan, const std::string& group) {
  c.put(group + ".model_name_or_path", named_model(asked, "OpenRLHF"));
  if (checkpointing_json(plan) == "full") c.put(group + ".gradient_checkpointing_enable");
  const std::string own = group == "actor" ? "actor." : "";
  if (plan.optimizer.kind->name == std::string_view("muon")) c.put(own + "optim", "muon");
  c.put(own + "max_norm", plan.gradient_clipping);
}

std::int64_t batch_of(const Plan& plan) {
  return checked_mul(plan.samples_at_once(), plan.workload.gradient_accumulation);
}

[[noreturn]] void refuse_asked(std::string_view key, Said message, Said expected) {
  refuse_export(fmt::format("workload.{}", key), std::move(message), std::move(expected));
}

/// Keys of a workload of several models that the arguments say.
void check_keys(const Json& work, std::initializer_list<std::string_view> written) {
  for (const auto& [key, value] : work.items())
    if (std::ranges::find(written, std::string_view(key)) == written.end())
      refuse_asked(key, "is no argument of OpenRLHF's", "a job without it, or --as job");
}

bool on_host(const Json& model) {
  const Json::json_pointer at("/framework/ds_config/zero_optimization/offload_param/device");
  return model.contains(at) && model.at(at) == "cpu";
}

/// A program that trains one model.
std::string one_model(const Json& asked, const Plan& plan, const Rlhf* rlhf) {
  const std::string_view algorithm = rlhf == nullptr ? "sft" : name_of(rlhf->algorithm);
  const bool dpo = algorithm == "dpo";
  if (!dpo && algorithm != "sft" && algorithm != "reward")
    refuse_asked("algorithm", fmt::format("OpenRLHF has no program for {}", algorithm),
                 "sft, dpo, reward, ppo or grpo");
  Arguments c(fmt::format("deepspeed --num_nodes {} --num_gpus {} --module openrlhf.cli.train_{}",
                          plan.cluster.nodes, plan.cluster.gpus_per_node,
                          algorithm == "reward" ? "rm" : algorithm));
  put_trained(c, asked, plan, "model");
  std::int64_t micro = plan.workload.micro_batch, all = batch_of(plan);
  if (rlhf != nullptr) {
    const std::int64_t pair = rlhf->description().sequences;
    micro /= pair;
    all /= pair;
    check_keys(asked.at("workload"), {"kind", "algorithm", "micro_batch", "gradient_accumulation",
                                      "sequence_length", "method", "lora", "reference", "models"});
  }
  c.put("train.micro_batch_size", micro);
  c.put("train.batch_size", all);
  c.put("data.max_len", plan.workload.sequence_length);
  put_engine(c, plan);
  if (plan.parallel.tensor > 1) c.put("ds.tensor_parallel_size", plan.parallel.tensor);
  if (!dpo) return c.take();
  if (rlhf->reference != ReferenceModel::copy)
    refuse_asked("reference", "OpenRLHF loads a copy of the model", "copy");
  c.put("ref.model_name_or_path", named_model(asked, "OpenRLHF"));
  const Json& work = asked.at("workload");
  const Json models = work.value("models", Json::object());
  if (models.contains("reference") && on_host(models.at("reference"))) c.put("ref.offload");
  return c.take();
}

/// train_ppo_ray: several models on the same GPUs, and vLLM's engines on them or on others.
class SeveralModels {
 public:
  SeveralModels(const Json& asked, const Rlhf& rlhf)
      : asked_(asked),
        work_(asked.at("workload")),
        rlhf_(rlhf),
        plan_(rlhf.roles.front().plan),
        models_(work_.value("models", Json::object())) {}

  std::string write() {
    check_keys(work_, {"kind", "algorithm", "micro_batch", "gradient_accumulation", "method",
                       "lora", "prompt_length", "new_tokens", "generation_batch", "token_budget",
                       "scoring_tokens", "scoring_batch", "entropy", "scoring_entropy", "rewards",
                       "reference", "models", "rollout"});
    if (!rlhf_.rollout)
      refuse_asked("rollout", "none, and OpenRLHF generates with vLLM", "an engine of vLLM's");
    put_trained(c_, asked_, plan_, "actor");
    put_groups();
    c_.put("algo.advantage.estimator", critic() ? "gae" : "group_norm");
    put_reference();
    put_others();
    put_batches();
    put_engine(c_, plan_);
    if (sleeps("actor")) c_.put("ds.enable_sleep");
    put_rollout();
    return c_.take();
  }

 private:
  bool critic() const { return rlhf_.description().has_critic; }
  bool together() const { return rlhf_.rollout->at().shares_gpus; }
  Json model(const char* role) const { return models_.value(role, Json::object()); }
  const Role* role(RoleKind kind) const {
    for (const Role* one : rlhf_.all_roles())
      if (one->kind == kind) return one;
    return nullptr;
  }
  bool has(RoleKind kind) const { return role(kind) != nullptr; }
  bool is_apart(RoleKind kind) const {
    return has(kind) && std::ranges::find(rlhf_.roles, kind, &Role::kind) == rlhf_.roles.end();
  }
  bool sleeps(const char* role) const { return model(role).value("idle", "gpu") == "optimizer"; }

  void put_groups() {
    const auto stays = [&](RoleKind kind) { return has(kind) && !is_apart(kind); };
    if (!together() && (stays(RoleKind::critic) || stays(RoleKind::reward)))
      refuse_asked("rollout.placement",
                   "separate, where OpenRLHF has critic and reward model apart",
                   "colocated, or gpus of their own for both");
    if (together() && !rlhf_.apart.empty())
      refuse_asked("models", "GPUs of their own beside an engine on the trainer's",
                   "rollout.placement separate");
    if (together()) c_.put("train.colocate_all");
    if (!together() && !is_apart(RoleKind::reference)) c_.put("train.colocate_actor_ref");
    if (model("reward").contains("beside") || model("critic").contains("beside"))
      c_.put("train.colocate_critic_reward");
    for (const auto& [group, kind] :
         {std::pair{"actor", RoleKind::actor}, std::pair{"ref", RoleKind::reference},
          std::pair{"critic", RoleKind::critic}, std::pair{"reward", RoleKind::reward}}) {
      if (kind != RoleKind::reference && !has(kind)) continue;
      const Cluster& gpus = has(kind) ? role(kind)->plan.cluster : plan_.cluster;
      c_.put(fmt::format("{}.num_nodes", group), gpus.nodes);
      c_.put(fmt::format("{}.num_gpus_per_node", group), gpus.gpus_per_node);
    }
  }

  void put_reference() {
    if (rlhf_.reference == ReferenceModel::base)
      refuse_asked("reference", "OpenRLHF loads a copy of the model", "copy or none");
    c_.put("algo.kl.init_coef", rlhf_.reference == ReferenceModel::none ? 0.0 : 0.01);
    if (on_host(model("reference"))) c_.put("ref.offload");
  }

  /// Critic and reward model: by their own names or the actor's.
  void put_others() {
    for (const auto& [role, value] : models_.items())
      for (const auto& [key, own] : value.items()) {
        const bool trained = role == "actor" || role == "critic";
        const bool written = (key == "idle" && trained && own == "optimizer") ||
                             (key == "model" && role != "actor" && own.is_string()) ||
                             (key == "framework" && !trained && on_host(value)) || key == "gpus" ||
                             key == "beside";
        if (!written)
          refuse_asked(fmt::format("models.{}.{}", role, key), "is no argument of OpenRLHF's",
                       "one for all models, or --as job");
      }
    if (critic() && !is_apart(RoleKind::critic) && sleeps("critic") != sleeps("actor"))
      refuse_asked("models.critic.idle", "another than the actor's", "the same");
    const std::string name = named_model(asked_, "OpenRLHF");
    if (critic()) c_.put("critic.model_name_or_path", model("critic").value("model", name));
    if (has(RoleKind::reward)) {
      c_.put("reward.model_name_or_path", model("reward").value("model", name));
      if (on_host(model("reward"))) c_.put("reward.offload");
    } else {
      c_.put("reward.remote_url", "\"${REWARD:?a function or an address}\"");
    }
    if (!work_.contains("entropy") || work_.at("entropy") == "none") return;
    if (work_.at("entropy") != "compiled" || work_.value("scoring_entropy", "") != "none")
      refuse_asked("scoring_entropy",
                   "OpenRLHF makes none where it scores, and compiles the loss's",
                   "entropy compiled, scoring_entropy none");
    c_.put("actor.entropy_coef", 0);
  }

  void put_batches() {
    const Workload& w = rlhf_.generation.workload;
    const std::int64_t n = rlhf_.rollout->completions;
    const std::int64_t ranks = plan_.samples_at_once() / plan_.workload.micro_batch;
    const std::int64_t generated = checked_mul(w.micro_batch, ranks);
    if (generated % n != 0)
      refuse_asked("generation_batch",
                   fmt::format("{} answers are no whole number of groups of {}", generated, n),
                   fmt::format("a multiple of {} on all GPUs", n));
    c_.put("data.max_len", w.sequence_length + w.generation.new_tokens);
    c_.put("rollout.max_new_tokens", w.generation.new_tokens);
    c_.put("rollout.batch_size", generated / n);
    c_.put("rollout.n_samples_per_prompt", n);
    c_.put("train.batch_size", batch_of(plan_));
    if (const std::int64_t budget = work_.value("token_budget", std::int64_t{0}); budget > 0) {
      c_.put("train.dynamic_batch_enable");
      c_.put("train.max_tokens_per_gpu", budget);
      c_.put("rollout.max_tokens_per_gpu", work_.value("scoring_tokens", budget));
      return;
    }
    if (rlhf_.scoring_tokens > 0)
      refuse_asked("scoring_tokens", "a budget for scores alone", "token_budget beside it");
    c_.put("train.micro_batch_size", plan_.workload.micro_batch);
    const std::int64_t scored = rlhf_.scoring_batch;
    c_.put("rollout.micro_batch_size", scored > 0 ? scored : plan_.workload.micro_batch);
  }

  void put_rollout() {
    const RolloutEngine& e = *rlhf_.rollout;
    const Workload& w = rlhf_.generation.workload;
    const std::int64_t whole = w.sequence_length + w.generation.new_tokens;
    RolloutEngine usual = e;  // vLLM's own sizes, which OpenRLHF leaves alone
    usual.sequences = usual.batched_tokens = 0;
    choose_sizes(usual, plan_.cluster.gpu, plan_.trainer->starts_engine);
    const auto check = [](const char* key, bool same, const char* expected) {
      if (!same) refuse_asked(fmt::format("rollout.{}", key), "is none of OpenRLHF's", expected);
    };
    check("engine", e.engine == &kVllm, "vllm");
    check("sleep_level", e.sleep_level <= 1, "0 or 1");
    check("block_size", e.block_tokens == kVllm.block_tokens, "16");
    check("max_num_batched_tokens", e.batched_tokens == usual.batched_tokens, "2048");
    check("max_num_seqs", e.sequences == usual.sequences, "128");
    check("max_model_length", e.model_length == 0 || e.model_length == whole,
          "prompt and new tokens");
    check("weight_bucket", e.weight_bucket == 0, "0");
    check("async_scheduling", e.in_turns() == (e.tensor_parallel > 1),
          "false over several GPUs, else true");
    check("expert_parallel", e.expert_parallel == 1, "1");
    const std::int64_t gpus = e.gpus.value_or(plan_.cluster.world());
    c_.put("vllm.num_engines", std::max<std::int64_t>(1, gpus / e.tensor_parallel));
    if (e.steps_off_policy > 0) {
      c_.put("train.async_enable");
      c_.put("train.async_queue_size", e.steps_off_policy);
    }
    c_.put("vllm.tensor_parallel_size", e.tensor_parallel);
    c_.put("vllm.gpu_memory_utilization", e.utilization);
    if (e.sleep_level > 0) c_.put("vllm.enable_sleep");
    if (!e.cuda_graphs) c_.put("vllm.enforce_eager");
    if (e.prefix_caching) c_.put("vllm.enable_prefix_caching");
    c_.put("vllm.sync_backend", "nccl");
  }

  const Json& asked_;
  const Json& work_;
  const Rlhf& rlhf_;
  const Plan& plan_;
  const Json models_;
  Arguments c_{"ray job submit -- python3 -m openrlhf.cli.train_ppo_ray"};
};

std::string openrlhf_script(const Json& asked, const Job& job, const Estimate& e) {
  const Rlhf* rlhf = job.rlhf ? &*job.rlhf : nullptr;
  const Plan& plan = rlhf == nullptr ? job.plan : rlhf->roles.front().plan;
  check_openrlhf(plan);
  const bool generates = rlhf != nullptr && rlhf->description().generates;
  std::string text = "#!/usr/bin/env bash\n" + header_comment(job, e) +
                     "#\n# What it is given is added: --data.* and --ckpt.*, learning rates.\n";
  text += generates ? SeveralModels(asked, *rlhf).write() : one_model(asked, plan, rlhf);
  return text;
}

}  // namespace

const ExportFormat kOpenRlhfFormat{"openrlhf", "openrlhf.sh", openrlhf_script, true, true};

}  // namespace shardplan
