// What openrlhf.cli.train_ppo_ray runs (3c3be623: openrlhf/cli/train_ppo_ray.py, openrlhf/trainer).
// The job is of the GPUs that the actor is on; what has GPUs of its own is left out, and said.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/engine_gpus.h"
#include "import/kinds/openrlhf_flags.h"

namespace shardplan::importing::openrlhf {
namespace {

/// Estimators that run no critic (trainer/ppo_utils/experience_maker.py).
constexpr std::array<std::string_view, 5> kWithoutCritic{"reinforce", "rloo", "reinforce_baseline",
                                                         "group_norm", "dr_grpo"};
constexpr std::int64_t kUsualBudget = 16192;  ///< train.max_tokens_per_gpu

class RlComposer {
 public:
  explicit RlComposer(const Flags& f) : f_(f), recipe_(f.recipe()) {}

  void run() {
    if (f_.integer("ds_tensor_parallel_size", 1) > 1)
      f_.refuse("ds_tensor_parallel_size",
                "several models whose layers DeepSpeed divides over GPUs are not modelled", "1");
    take_gpus();
    take_algorithm();
    take_lengths();
    take_batches();
    take_actor();
    take_reference();
    if (recipe_.algorithm == "ppo") take_critic();
    take_reward();
    take_rollout();
    if (recipe_.rlhf["models"].empty()) recipe_.rlhf.erase("models");
  }

 private:
  bool together() const { return f_.on("colocate_all_models"); }
  bool beside_reference() const { return together() || f_.on("colocate_actor_ref"); }
  std::int64_t gpus() const { return *recipe_.machines * *recipe_.per_machine; }
  std::int64_t ring() const { return f_.integer("ring_attn_size", 1); }
  std::int64_t sequence() const {
    return recipe_.rlhf["prompt_length"].get<std::int64_t>() +
           recipe_.rlhf["new_tokens"].get<std::int64_t>();
  }

  void take_gpus() {
    recipe_.machines = f_.integer("actor_num_nodes", 1);
    recipe_.per_machine = f_.integer("actor_num_gpus_per_node", 8);
    const double coefficient = f_.number("init_kl_coef", 0.01);
    if (!beside_reference() || coefficient <= 0) return;
    const std::int64_t others =
        f_.integer("ref_num_nodes", 1) * f_.integer("ref_num_gpus_per_node", 8);
    if (others != gpus())
      f_.refuse(
          "ref_num_gpus_per_node",
          fmt::format("the reference has {} GPUs, and the actor, which it shares them with, {}",
                      others, gpus()),
          fmt::format("{} in all", gpus()));
  }

  void take_algorithm() {
    const std::string estimator = f_.text("advantage_estimator", "gae");
    if (estimator != "gae" && std::ranges::find(kWithoutCritic, estimator) == kWithoutCritic.end())
      f_.refuse("advantage_estimator", fmt::format("'{}' is not estimated", estimator),
                fmt::format("gae, {}", fmt::join(kWithoutCritic, ", ")));
    const bool critic = estimator == "gae";
    recipe_.take_algorithm(critic ? "ppo" : "grpo", f_.origin("advantage_estimator"));
  }

  void take_lengths() {
    Json& rlhf = recipe_.rlhf;
    const bool apart = f_.says("prompt_max_len") || f_.says("generate_max_len");
    if (apart) {
      rlhf["prompt_length"] = f_.integer("prompt_max_len", 1024);
      rlhf["new_tokens"] = f_.integer("generate_max_len", 1024);
      f_.came_from("/workload/prompt_length", "prompt_max_len");
      f_.came_from("/workload/new_tokens", "generate_max_len");
      return;
    }
    const std::int64_t all = f_.integer("max_len", 2048);
    const std::int64_t most = f_.integer("max_new_tokens", 0);
    const std::int64_t answer = most > 0 && most < all ? most : all - all / 2;
    rlhf["prompt_length"] = all - answer;
    rlhf["new_tokens"] = answer;
    f_.came_from("/workload/prompt_length", "max_len");
    f_.came_from("/workload/new_tokens", "max_new_tokens");
    if (answer != most)
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = fmt::format("workload.new_tokens: {}", answer),
                    .reason = fmt::format("half of the {} tokens that a sample may have", all)});
  }

  /// A sample that is longer than the budget is a batch of its own (utils/seqlen_balancing.py).
  std::int64_t budget(const char* field, std::string_view flag, std::int64_t otherwise) {
    const std::int64_t said = f_.integer(flag, otherwise);
    const std::int64_t least = (sequence() + ring() - 1) / ring();
    if (said >= least) return said;
    recipe_.note(
        {.kind = Note::Kind::assumed,
         .field = fmt::format("workload.{}: {}", field, least),
         .reason = fmt::format("{} tokens a GPU hold no sample of {}: it is a batch of its own",
                               said, sequence())});
    return least;
  }

  void take_batches() {
    recipe_.global_batch = f_.integer("train_batch_size", 128);
    recipe_.generated =
        f_.integer("rollout_batch_size", 1024) * f_.integer("n_samples_per_prompt", 1);
    std::int64_t micro = f_.integer("micro_train_batch_size", f_.older() ? 4 : 1);
    if (f_.on("use_dynamic_batch")) {
      const std::int64_t tokens = f_.integer("train_max_tokens_per_gpu", kUsualBudget);
      const std::int64_t held = budget("token_budget", "train_max_tokens_per_gpu", kUsualBudget);
      recipe_.rlhf["token_budget"] = held;
      f_.came_from("/workload/token_budget", "train_max_tokens_per_gpu");
      recipe_.rlhf["scoring_tokens"] =
          budget("scoring_tokens", "rollout_max_tokens_per_gpu", tokens);
      f_.came_from("/workload/scoring_tokens", "rollout_max_tokens_per_gpu");
      micro = std::max<std::int64_t>(1, held * ring() / sequence());
    } else {
      recipe_.rlhf["scoring_batch"] = f_.integer("micro_rollout_batch_size", f_.older() ? 8 : 1);
      f_.came_from("/workload/scoring_batch", "micro_rollout_batch_size");
    }
    recipe_.set("/workload/micro_batch", std::max<std::int64_t>(1, micro),
                f_.origin("micro_train_batch_size"));
  }

  /// offload_deepspeed_states: optimizer and master states, between the turns.
  bool sleeps() const { return f_.on("deepspeed_enable_sleep") && !f_.on("adam_offload"); }

  void take_actor() {
    Json& models = recipe_.rlhf["models"] = Json::object();
    if (sleeps()) models["actor"]["idle"] = "optimizer";
    if (!f_.says("entropy_loss_coef")) return;
    recipe_.rlhf["entropy"] = "compiled";  // models/utils.py, compute_entropy
    recipe_.rlhf["scoring_entropy"] = "none";
  }

  void take_reference() {
    if (f_.number("init_kl_coef", 0.01) <= 0) {
      recipe_.rlhf["reference"] = "none";
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = "workload.reference: none",
                    .reason = "its coefficient is zero"});
      return;
    }
    Json role = frozen_role(f_, "ref_offload");
    if (!beside_reference()) take_own_gpus(role, "reference", "ref");
    if (!role.empty()) recipe_.rlhf["models"]["reference"] = std::move(role);
  }

  /// cli/train_ppo_ray.py, train: a placement group of as many GPUs for each model, or one for
  /// actor and reference, and one for critic and reward.
  void take_own_gpus(Json& role, std::string_view name, std::string_view flags) {
    const std::string gpus = fmt::format("{}_num_gpus_per_node", flags);
    role["gpus"] = f_.integer(fmt::format("{}_num_nodes", flags), 1) * f_.integer(gpus, 8);
    f_.came_from(fmt::format("/workload/models/{}/gpus", name), gpus);
  }

  /// A model by its own path; nothing where it is the actor's or a flag says the network.
  void take_model(Json& role, std::string_view path, std::string_view name) const {
    if (recipe_.has_model || !f_.says(path)) return;
    const std::string own = f_.text(path, "");
    if (own.find(',') != std::string::npos)
      f_.refuse(path, "several reward models are not estimated", "one of them");
    if (own == f_.text("pretrain", "")) return;
    role["model"] = own;
    f_.came_from(fmt::format("/workload/models/{}/model", name), path);
  }

  bool judged_elsewhere() const { return f_.says("remote_rm_url") || f_.says("agent_func_path"); }

  void take_critic() {
    Json& role = recipe_.rlhf["models"]["critic"] = Json::object();
    if (sleeps()) role["idle"] = "optimizer";
    if (f_.text("critic_optim", "adam") != f_.text("optim", "adam"))
      f_.refuse("critic_optim", "another optimizer than the actor's is not estimated", "the same");
    if (f_.says("critic_pretrain"))
      take_model(role, "critic_pretrain", "critic");
    else if (!judged_elsewhere())
      take_model(role, "reward_pretrain", "critic");
    if (!together()) {
      role.erase("idle");
      take_own_gpus(role, "critic", "critic");
    }
    if (role.empty()) recipe_.rlhf["models"].erase("critic");
  }

  void take_reward() {
    if (!f_.says("reward_pretrain") || judged_elsewhere()) {
      if (recipe_.algorithm == "ppo") recipe_.rlhf["rewards"] = "function";
      return;
    }
    Json role = frozen_role(f_, "reward_offload");
    take_model(role, "reward_pretrain", "reward");
    if (!together()) {
      if (recipe_.algorithm == "ppo" && f_.on("colocate_critic_reward"))
        role["beside"] = "critic";
      else
        take_own_gpus(role, "reward", "reward");
    }
    if (!role.empty() || recipe_.algorithm != "ppo")
      recipe_.rlhf["models"]["reward"] = std::move(role);
  }

  void check_engines(std::int64_t engines, std::int64_t ranks) const {
    if (engines * ranks == gpus()) return;
    f_.refuse("vllm_num_engines",
              fmt::format("{} engines of {} GPU{} on the {} GPUs that they share with the actor",
                          engines, ranks, ranks == 1 ? "" : "s", gpus()),
              gpus() % ranks == 0 ? fmt::format("{}", gpus() / ranks)
                                  : std::string("engines that divide them"));
  }

  void take_rollout() {
    const std::int64_t engines = f_.integer("vllm_num_engines", 0);
    if (engines == 0) return;
    const bool apart = !together() || f_.on("async_train");
    const std::int64_t ranks =
        std::max<std::int64_t>(1, f_.integer("vllm_tensor_parallel_size", 1));
    if (!apart) check_engines(engines, ranks);
    const bool sleeps = f_.on("vllm_enable_sleep");
    if (sleeps && f_.on("async_train"))
      f_.refuse("vllm_enable_sleep", "an engine that generates beside training does not sleep",
                "one of it and the asynchronous training");
    Json rollout{{"engine", "vllm"},
                 {"placement", apart ? "separate" : "colocated"},
                 {"gpu_memory_utilization", f_.number("vllm_gpu_memory_utilization", 0.95)},
                 {"tensor_parallel", ranks},
                 {"prefix_caching", f_.on("enable_prefix_caching")},
                 {"sleep_level", sleeps && !apart ? 1 : 0}};  // vllm_engine.py, sleep
    if (apart) {
      take_engine_gpus(rollout, recipe_, engines * ranks, *recipe_.machines);
      f_.came_from("/workload/rollout/gpus", "vllm_num_engines");
    }
    if (f_.on("async_train"))  // trainer/ppo_trainer_async.py: batches that may wait
      rollout["steps_off_policy"] = f_.integer("async_queue_size", 1);
    if (f_.on("enforce_eager")) rollout["cuda_graphs"] = false;
    if (const std::int64_t n = f_.integer("n_samples_per_prompt", 1); n > 1)
      rollout["completions"] = n;
    for (const auto& [field, flag] :
         {std::pair{"gpu_memory_utilization", "vllm_gpu_memory_utilization"},
          std::pair{"tensor_parallel", "vllm_tensor_parallel_size"},
          std::pair{"completions", "n_samples_per_prompt"}})
      f_.came_from(fmt::format("/workload/rollout/{}", field), flag);
    recipe_.rlhf["rollout"] = std::move(rollout);
  }

  const Flags& f_;
  Recipe& recipe_;
};

}  // namespace

void compose_rl(const Flags& flags) {
  RlComposer(flags).run();
}

}  // namespace shardplan::importing::openrlhf
