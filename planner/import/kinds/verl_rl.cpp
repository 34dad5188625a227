// What verl 0.8 runs of a configuration of verl.trainer.main_ppo (verl/trainer/config,
// verl/trainer/ppo/utils.py, verl/workers/fsdp_workers.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "import/engine_gpus.h"
#include "import/kinds/verl_config.h"
#include "import/vocabulary.h"

namespace shardplan::importing::verl {
namespace {

constexpr std::string_view kActor = "actor_rollout_ref.actor.";
constexpr std::string_view kReference = "actor_rollout_ref.ref.";
constexpr std::string_view kRollout = "actor_rollout_ref.rollout.";
constexpr std::string_view kModel = "actor_rollout_ref.model.";

std::string at(std::string_view group, std::string_view key) {
  return std::string(group) + std::string(key);
}

/// Estimators that run no critic (core_algos.py); the tokens of all are trained on alike.
constexpr std::array<std::string_view, 12> kWithoutCritic{"grpo",
                                                          "grpo_passk",
                                                          "grpo_vectorized",
                                                          "rloo",
                                                          "rloo_vectorized",
                                                          "reinforce_plus_plus",
                                                          "reinforce_plus_plus_baseline",
                                                          "remax",
                                                          "opo",
                                                          "gpg",
                                                          "optimal_token_baseline",
                                                          "tir_optimal_token_baseline"};

class Composer {
 public:
  explicit Composer(const Config& config) : c_(config), recipe_(config.recipe()) {}

  void run() {
    take_algorithm();
    take_gpus();
    take_framework();
    take_batches();
    take_loss();
    take_reference();
    if (recipe_.algorithm == "ppo") take_critic();
    take_reward();
    take_rollout();
    recipe_.rlhf["models"]["actor"]["idle"] =
        idle_of(kActor, under_megatron() ? "megatron." : "fsdp_config.");
    if (recipe_.rlhf["models"]["actor"]["idle"] == "gpu") recipe_.rlhf["models"].erase("actor");
    if (recipe_.rlhf["models"].empty()) recipe_.rlhf.erase("models");
  }

 private:
  void take_algorithm() {
    const std::string estimator = c_.text("algorithm.adv_estimator", "gae");
    const bool known = std::ranges::find(kWithoutCritic, estimator) != kWithoutCritic.end();
    if (!known && estimator != "gae")
      c_.refuse("algorithm.adv_estimator", fmt::format("'{}' is not estimated", estimator),
                "gae, or one of " + fmt::format("{}", fmt::join(kWithoutCritic, ", ")));
    const bool critic = c_.flag("critic.enable", estimator == "gae");
    recipe_.take_algorithm(critic ? "ppo" : "grpo", c_.origin("algorithm.adv_estimator"));
    recipe_.rlhf["prompt_length"] = c_.integer("data.max_prompt_length", 512);
    recipe_.rlhf["new_tokens"] = c_.integer("data.max_response_length", 512);
    c_.came_from("/workload/prompt_length", "data.max_prompt_length");
    c_.came_from("/workload/new_tokens", "data.max_response_length");
  }

  void take_gpus() {
    recipe_.machines = c_.integer("trainer.nnodes", 1);
    recipe_.per_machine = c_.integer("trainer.n_gpus_per_node", 8);
  }

  std::int64_t gpus() const { return *recipe_.machines * *recipe_.per_machine; }
  std::int64_t sequence() const {
    return recipe_.rlhf["prompt_length"].get<std::int64_t>() +
           recipe_.rlhf["new_tokens"].get<std::int64_t>();
  }

  std::string strategy(std::string_view group) const {
    // ppo_megatron_trainer.yaml is the configuration of workers under Megatron-LM.
    const bool megatron = c_.text("config_name", "").find("megatron") != std::string::npos ||
                          c_.said("actor_rollout_ref.actor.megatron") != nullptr;
    return c_.text(at(group, "strategy"),
                   c_.text(at(kActor, "strategy"), megatron ? "megatron" : "fsdp"));
  }

  /// `options`: where a worker's FSDP options stand.
  Json framework_of(std::string_view group, const std::string& strategy,
                    std::string_view options) const {
    if (strategy == "megatron") return megatron_framework(c_, group);
    if (strategy != "fsdp" && strategy != "fsdp2")
      c_.refuse(at(group, "strategy"), fmt::format("a worker under {} is not estimated", strategy),
                "fsdp, fsdp2 or megatron");
    return fsdp_framework(c_, at(group, options), strategy == "fsdp2", gpus());
  }

  std::string precision_of(std::string_view group, std::string_view options) const {
    return fsdp_precision(c_, at(group, options));
  }

  bool under_megatron() const { return strategy(kActor) == "megatron"; }

  void take_megatron() {
    recipe_.set("/framework", megatron_framework(c_, kActor), c_.origin(at(kActor, "strategy")));
    recipe_.set("/precision", "bf16-master", c_.origin(at(kActor, "megatron.dtype")));
    recipe_.set_default("/optimizer", "adamw");
    const Json degrees = megatron_degrees(c_, kActor);
    for (const auto& [name, value] : degrees.items())
      recipe_.set("/parallel/" + name, value, c_.origin(at(kActor, "megatron")));
    recipe_.set(
        "/checkpointing", megatron_checkpointing(c_),
        c_.origin(at(kActor, "megatron.override_transformer_config.recompute_granularity")));
    sequence_ranks_ = degrees.value("context", std::int64_t{1});
    model_ranks_ = degrees.value("tensor", std::int64_t{1}) *
                   degrees.value("pipeline", std::int64_t{1}) * sequence_ranks_;
    recipe_.set("/gradient_clipping", c_.number(at(kActor, "optim.clip_grad"), 1.0),
                c_.origin(at(kActor, "optim.clip_grad")));
  }

  void take_framework() {
    if (under_megatron()) return take_megatron();
    recipe_.set("/framework", framework_of(kActor, strategy(kActor), "fsdp_config."),
                c_.origin(at(kActor, "strategy")));
    // build_optimizer: torch.optim's, as it is.
    recipe_.set_default("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}});
    recipe_.set("/trainer", "verl", c_.origin(at(kActor, "strategy")));
    recipe_.set("/precision", precision_of(kActor, "fsdp_config."),
                c_.origin(at(kActor, "fsdp_config.model_dtype")));
    sequence_ranks_ = c_.integer(at(kActor, "ulysses_sequence_parallel_size"), 1);
    if (sequence_ranks_ > 1)
      recipe_.set("/parallel/sequence", sequence_ranks_,
                  c_.origin(at(kActor, "ulysses_sequence_parallel_size")));
    model_ranks_ = sequence_ranks_;
    const bool recomputes = c_.flag(at(kModel, "enable_gradient_checkpointing"), true);
    recipe_.set("/checkpointing", recomputes ? "full" : "none",
                c_.origin(at(kModel, "enable_gradient_checkpointing")));
    recipe_.set("/gradient_clipping", c_.number(at(kActor, "grad_clip"), 1.0),
                c_.origin(at(kActor, "grad_clip")));
  }

  /// Samples a GPU takes, of a key of its own or of one for all GPUs (normalized by
  /// fsdp_workers.py); 0: neither.
  std::int64_t batch_of(std::string_view group, std::string_view key, std::int64_t divided) const {
    const std::string whole = at(group, key);
    if (const std::int64_t all = c_.integer(whole, 0); all > 0)
      return std::max<std::int64_t>(1, all * divided / gpus());
    return c_.integer(whole + "_per_gpu", 0);
  }

  /// Between two updates of the engine's weights.
  std::int64_t prompts(std::int64_t mini) const {
    if (c_.said("async_training") == nullptr) return c_.integer("data.train_batch_size", 1024);
    return c_.integer("async_training.trigger_parameter_sync_step", 4) *
           c_.integer("async_training.require_batches", 1) * mini;
  }

  void take_batches() {
    const std::int64_t repeats = c_.integer(at(kRollout, "n"), 1);
    const std::int64_t mini = c_.integer(at(kActor, "ppo_mini_batch_size"), 256);
    recipe_.global_batch = mini * repeats;
    recipe_.generated = prompts(mini) * repeats;
    dynamic_ = c_.flag(at(kActor, "use_dynamic_bsz"), false);
    std::int64_t micro = batch_of(kActor, "ppo_micro_batch_size", model_ranks_);
    const std::int64_t budget = c_.integer(at(kActor, "ppo_max_token_len_per_gpu"), 16384);
    if (dynamic_) {
      recipe_.rlhf["token_budget"] = budget;
      c_.came_from("/workload/token_budget", at(kActor, "ppo_max_token_len_per_gpu"));
      micro = std::max<std::int64_t>(1, budget * sequence_ranks_ / sequence());
      recipe_.micro_batch_at_most = true;  // of a mini-batch: dp_actor.py, update_policy
    }
    if (micro == 0) micro = recipe_.asked_micro_batch;
    if (micro == 0)
      c_.refuse(at(kActor, "ppo_micro_batch_size_per_gpu"),
                "neither said nor use_dynamic_bsz: verl asks for one of them",
                "ppo_micro_batch_size_per_gpu, use_dynamic_bsz: true, or --micro-batch");
    recipe_.set("/workload/micro_batch", micro,
                c_.origin(at(kActor, "ppo_micro_batch_size_per_gpu")));
    take_scoring(budget);
  }

  /// The actor and the reference score the same samples; the larger of what both take.
  void take_scoring(std::int64_t budget) {
    std::int64_t tokens = 0, samples = 0;
    for (const std::string_view group : {kRollout, kReference}) {
      if (c_.flag(at(group, "log_prob_use_dynamic_bsz"), dynamic_))
        tokens = std::max(tokens, c_.integer(at(group, "log_prob_max_token_len_per_gpu"), budget));
      else
        samples = std::max(samples, batch_of(group, "log_prob_micro_batch_size", model_ranks_));
    }
    const bool both = tokens > 0 && samples > 0;
    if (both && samples * sequence() > tokens * sequence_ranks_) tokens = 0;
    if (tokens > 0)
      recipe_.rlhf["scoring_tokens"] = tokens;
    else if (samples > 0)
      recipe_.rlhf["scoring_batch"] = samples;
    c_.came_from("/workload/scoring_tokens", at(kReference, "log_prob_max_token_len_per_gpu"));
  }

  /// Where padding stays, scores take the entropy by PyTorch's operations, whatever the loss asks.
  void take_loss() {
    if (under_megatron()) return take_megatron_loss();
    if (c_.flag(at(kModel, "use_fused_kernels"), false)) {
      recipe_.set("/loss", "fused_linear", c_.origin(at(kModel, "use_fused_kernels")));
      return;
    }
    const bool packs = c_.flag(at(kModel, "use_remove_padding"), true);
    const bool compiles = c_.flag(at(kActor, "use_torch_compile"), true);
    const bool asked = c_.number(at(kActor, "entropy_coeff"), 0) != 0 ||
                       c_.flag(at(kActor, "calculate_entropy"), false) ||
                       c_.flag(at(kActor, "calculate_sum_pi_squared"), false);
    const std::string kind = packs && compiles ? "compiled" : "eager";
    if (asked) recipe_.rlhf["entropy"] = kind;
    if (!recipe_.lora.is_null() || kind == "compiled") return;
    recipe_.rlhf["scoring_entropy"] = kind;
    recipe_.note({.kind = Note::Kind::assumed,
                  .field = "workload.scoring_entropy: eager",
                  .reason = "old log-probabilities come with the entropy, by PyTorch's operations "
                            "where padding stays or nothing is compiled"});
  }

  /// Scores have the entropy; its kernel there is the same as in the loss (megatron_actor.py).
  void take_megatron_loss() {
    const bool asked = c_.number(at(kActor, "entropy_coeff"), 0) != 0 ||
                       c_.flag(at(kActor, "calculate_entropy"), false);
    if (c_.flag(at(kModel, "use_fused_kernels"), false))
      recipe_.note({.kind = Note::Kind::warning,
                    .key = at(kModel, "use_fused_kernels"),
                    .reason = "under Megatron-LM all logits are estimated, which is more"});
    recipe_.rlhf[asked ? "entropy" : "scoring_entropy"] = "compiled";
  }

  /// "gpu", "parameters", "optimizer" or "host".
  std::string idle_of(std::string_view group, std::string_view options) const {
    const bool parameters = c_.flag(at(group, options) + "param_offload", false);
    const bool optimizer = c_.flag(at(group, options) + "optimizer_offload", false);
    if (parameters && optimizer) return "host";
    return parameters ? "parameters" : optimizer ? "optimizer" : "gpu";
  }

  /// A module of its own, whose shards FSDP keeps on the host (CPUOffload, whatever param_offload
  /// says), in the type that its own options say.
  void take_reference() {
    const bool asked =
        c_.flag(at(kActor, "use_kl_loss"), false) || c_.flag("algorithm.use_kl_in_reward", false);
    if (!asked) {
      recipe_.rlhf["reference"] = "none";
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = "workload.reference: none",
                    .reason = "neither use_kl_loss nor use_kl_in_reward asks one"});
      return;
    }
    if (!recipe_.lora.is_null()) {
      recipe_.rlhf["reference"] = "base";
      return;
    }
    if (under_megatron()) return take_megatron_reference();
    Json& model = recipe_.rlhf["models"]["reference"];
    model["framework"] = framework_of(kReference, strategy(kReference), "fsdp_config.");
    keep_on_host(model);
    const std::string precision = precision_of(kReference, "fsdp_config.");
    if (*recipe_.find("/precision") != precision) model["precision"] = precision;
  }

  /// Its parameters alone, in 16 bits, cut as it says itself.
  void take_megatron_reference() {
    Json& model = recipe_.rlhf["models"]["reference"];
    model = Json::object();
    Json degrees = megatron_degrees(c_, kReference);
    degrees["virtual_pipeline"] = 1;
    model["parallel"] = std::move(degrees);
    if (c_.flag(at(kReference, "megatron.param_offload"),
                c_.flag(at(kActor, "megatron.param_offload"), false)))
      model["idle"] = "host";
  }

  /// One GPU has nothing to gather: the whole model is there in its turn.
  void keep_on_host(Json& role) const {
    if (gpus() > 1)
      role["framework"]["cpu_offload"] = true;
    else
      role["idle"] = "host";
  }

  /// A model, by the path that a worker has; nothing where it is the actor's own.
  void take_model(Json& role, std::string_view path) const {
    const Json* own = c_.said(path);
    const Json* actor = c_.said(at(kModel, "path"));
    if (own == nullptr || (actor != nullptr && *own == *actor)) return;
    if (recipe_.has_model) return;
    role["model"] = *own;
    c_.came_from(path.starts_with("critic") ? "/workload/models/critic/model"
                                            : "/workload/models/reward/model",
                 path);
  }

  void take_critic() {
    Json& role = recipe_.rlhf["models"]["critic"];
    role = Json::object();
    take_model(role, "critic.model.path");
    const std::string own = strategy("critic.");
    if ((own == "megatron") != under_megatron())
      c_.refuse("critic.strategy", "a critic under another framework than the actor's", "the same");
    role["framework"] = framework_of("critic.", own, "model.fsdp_config.");
    if (role["framework"] == *recipe_.find("/framework")) role.erase("framework");
    const std::string idle =
        idle_of("critic.", under_megatron() ? "megatron." : "model.fsdp_config.");
    if (idle != "gpu") role["idle"] = idle;
    const std::int64_t divided =
        under_megatron() ? take_cut_critic(role) : take_critic_options(role);
    if (c_.flag("critic.use_dynamic_bsz", dynamic_)) {
      role["token_budget"] = c_.integer("critic.ppo_max_token_len_per_gpu", 32768);
    } else {
      role["token_budget"] = 0;
      std::int64_t micro = batch_of("critic.", "ppo_micro_batch_size", divided);
      if (micro == 0) micro = recipe_.asked_micro_batch;
      if (micro == 0)
        c_.refuse("critic.ppo_micro_batch_size_per_gpu",
                  "neither said nor use_dynamic_bsz: verl asks for one of them",
                  "critic.ppo_micro_batch_size_per_gpu, or --micro-batch");
      role["workload"]["micro_batch"] = micro;
    }
    if (!recipe_.rlhf.contains("token_budget") && role["token_budget"] == 0)
      role.erase("token_budget");
  }

  /// Both return the GPUs that share a sample.
  std::int64_t take_cut_critic(Json& role) const {
    role["parallel"] = megatron_degrees(c_, "critic.");
    std::int64_t ranks = 1;
    for (const char* name : {"tensor", "pipeline", "context"})
      ranks *= role["parallel"].value(name, std::int64_t{1});
    return ranks;
  }
  std::int64_t take_critic_options(Json& role) const {
    const std::string precision = precision_of("critic.", "model.fsdp_config.");
    if (*recipe_.find("/precision") != precision) role["precision"] = precision;
    const std::int64_t divided = c_.integer("critic.ulysses_sequence_parallel_size", 1);
    if (divided != sequence_ranks_) role["parallel"] = Json{{"sequence", divided}};
    const bool recomputes = c_.flag("critic.model.enable_gradient_checkpointing", true);
    if ((*recipe_.find("/checkpointing") == "full") != recomputes)
      role["checkpointing"] = recomputes ? "full" : "none";
    return divided;
  }

  /// A model that judges answers: a worker like the reference (use_reward_loop false), or an engine
  /// of its own.
  void take_reward() {
    if (!c_.flag("reward_model.enable", false)) {
      if (recipe_.algorithm == "ppo") recipe_.rlhf["rewards"] = "function";
      return;
    }
    if (c_.flag("reward_model.enable_resource_pool", false)) {
      if (recipe_.algorithm == "ppo") recipe_.rlhf["rewards"] = "function";
      recipe_.note({.kind = Note::Kind::warning,
                    .key = "reward_model.enable_resource_pool",
                    .reason = "the reward model is on GPUs of its own, which are not estimated"});
      return;
    }
    Json& role = recipe_.rlhf["models"]["reward"];
    role = Json::object();
    take_model(role, "reward_model.model.path");
    if (c_.flag("reward_model.use_reward_loop", true)) {
      role["engine"] = judging_engine();
      return;
    }
    role["framework"] = framework_of("reward_model.", c_.text("reward_model.strategy", "fsdp"),
                                     "model.fsdp_config.");
    keep_on_host(role);
    role["precision"] = "bf16-pure";
    if (const std::int64_t micro = batch_of("reward_model.", "micro_batch_size", 1); micro > 0)
      role["workload"]["micro_batch"] = micro;
  }

  /// config/reward_model/dp_reward_loop.yaml; it sleeps with its weights on the host (rollout/
  /// vllm_rollout/vllm_async_server.py, sleep).
  Json judging_engine() const {
    const auto key = [](std::string_view name) { return at("reward_model.rollout.", name); };
    const std::string name = c_.text(key("name"), "vllm");
    if (name != "vllm" && name != "sglang")
      c_.refuse(key("name"), fmt::format("'{}' is not estimated", name), "vllm or sglang");
    const std::int64_t length =
        c_.integer(key("prompt_length"), 2048) + c_.integer(key("response_length"), 2048);
    return {{"engine", name},
            {"gpu_memory_utilization", c_.number(key("gpu_memory_utilization"), 0.5)},
            {"tensor_parallel", c_.integer(key("tensor_model_parallel_size"), 2)},
            {"cuda_graphs", !c_.flag(key("enforce_eager"), true)},
            {"max_num_batched_tokens", c_.integer(key("max_num_batched_tokens"), 8192)},
            {"max_num_seqs", c_.integer(key("max_num_seqs"), 1024)},
            {"max_model_length", c_.integer(key("max_model_len"), length)},
            {"sleep_level", c_.flag(key("free_cache_engine"), true) ? 1 : 0}};
  }

  void take_rollout() {
    const std::string engine = c_.text(at(kRollout, "name"), "");
    if (engine == "hf") return;
    if (engine.empty())
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = "workload.rollout.engine: vllm",
                    .reason = "the file leaves actor_rollout_ref.rollout.name open"});
    else if (engine != "vllm" && engine != "sglang")
      c_.refuse(at(kRollout, "name"), fmt::format("'{}' is not estimated", engine),
                "vllm, sglang or hf");
    const auto key = [](std::string_view name) { return at(kRollout, name); };
    Json rollout{{"engine", engine.empty() ? "vllm" : engine}};
    const auto integer = [&](const char* field, std::string_view name, std::int64_t otherwise) {
      rollout[field] = c_.integer(key(name), otherwise);
      c_.came_from(fmt::format("/workload/rollout/{}", field), key(name));
    };
    rollout["gpu_memory_utilization"] = c_.number(key("gpu_memory_utilization"), 0.5);
    c_.came_from("/workload/rollout/gpu_memory_utilization", key("gpu_memory_utilization"));
    integer("tensor_parallel", "tensor_model_parallel_size", 2);
    if (c_.integer(key("expert_parallel_size"), 1) > 1)
      integer("expert_parallel", "expert_parallel_size", 1);
    integer("max_num_batched_tokens", "max_num_batched_tokens", 8192);
    integer("max_num_seqs", "max_num_seqs", 256);
    if (c_.said(key("max_model_len")) != nullptr) integer("max_model_length", "max_model_len", 0);
    const bool layered = c_.flag(key("layered_summon"), false);
    const bool frees = c_.flag(key("free_cache_engine"), true);
    rollout["sleep_level"] = !frees ? 0 : layered ? 1 : 2;
    if (layered) rollout["layered_summon"] = true;
    if (c_.flag(key("enforce_eager"), false)) rollout["cuda_graphs"] = false;
    if (c_.integer(key("n"), 1) > 1) integer("completions", "n", 1);
    if (!c_.flag(key("enable_prefix_caching"), true)) rollout["prefix_caching"] = false;
    if (c_.flag(key("calculate_log_probs"), false)) rollout["log_probabilities"] = true;
    rollout["weight_bucket"] =
        c_.integer(key("checkpoint_engine.update_weights_bucket_megabytes"), 2048) << 20;
    const bool apart = !c_.flag("actor_rollout_ref.hybrid_engine", true) ||
                       c_.said("rollout.n_gpus_per_node") != nullptr;
    rollout["placement"] = apart ? "separate" : "colocated";
    if (c_.said("rollout.n_gpus_per_node") != nullptr) take_own_gpus(rollout);
    recipe_.rlhf["rollout"] = std::move(rollout);
  }

  /// Its recipes that generate beside training: one batch behind, or as stale as the fully
  /// asynchronous one lets samples be (verl/experimental/one_step_off_policy/ray_trainer.py, fit;
  /// fully_async_policy/fully_async_rollouter.py).
  void take_own_gpus(Json& rollout) {
    const std::int64_t machines = c_.integer("rollout.nnodes", 1);
    take_engine_gpus(rollout, recipe_, machines * c_.integer("rollout.n_gpus_per_node", 8),
                     machines);
    c_.came_from("/workload/rollout/gpus", "rollout.n_gpus_per_node");
    const char* stale = "async_training.staleness_threshold";
    const double behind = c_.said("async_training") != nullptr ? c_.number(stale, 0.1) : 1;
    if (behind > 0) rollout["steps_off_policy"] = static_cast<std::int64_t>(std::ceil(behind));
    if (behind > 0 && c_.said("async_training") != nullptr) take_partial(rollout, behind);
    rollout["sleep_level"] = 0;
  }

  /// Answers go on under new weights: so many prompts of each engine are in work, and no more than
  /// may be behind (fully_async_rollouter.py, set_max_required_samples).
  void take_partial(Json& rollout, double behind) {
    const char* partial = "async_training.partial_rollout";
    if (!c_.flag(partial, true)) return;
    const std::int64_t engines =
        rollout.at("gpus").get<std::int64_t>() / rollout.value("tensor_parallel", std::int64_t{1});
    const auto most = static_cast<std::int64_t>(static_cast<double>(recipe_.generated.value_or(0)) *
                                                (1 + behind));
    const std::int64_t prompts =
        engines * c_.integer("async_training.concurrent_samples_per_replica", 16);
    rollout["answers_in_work"] =
        std::min(most, prompts * rollout.value("completions", std::int64_t{1}));
    c_.came_from("/workload/rollout/answers_in_work", partial);
  }

  const Config& c_;
  Recipe& recipe_;
  std::int64_t sequence_ranks_ = 1, model_ranks_ = 1;
  bool dynamic_ = false;
};

}  // namespace

void compose_rl(const Config& config) {
  Composer(config).run();
}

}  // namespace shardplan::importing::verl
