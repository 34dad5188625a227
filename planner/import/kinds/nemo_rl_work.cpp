// nemo_rl/algorithms: grpo.py, dpo.py, rm.py, sft.py; nemo_rl/models/generation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "import/kinds/nemo_rl_workers.h"
#include "import/vocabulary.h"

namespace shardplan::importing::nemo_rl {
namespace {

struct Algorithm {
  std::string_view block;  ///< at the top of a file
  std::string_view name;   ///< in a job; "": supervised
  bool generates = false;
};
/// The first that a file has; recipes of others inherit the block of grpo beside their own.
constexpr std::array kAlgorithms{Algorithm{"dpo", "dpo"}, Algorithm{"rm", "reward"},
                                 Algorithm{"sft", ""}, Algorithm{"grpo", "grpo", true}};

std::string generation(std::string_view key) {
  return fmt::format("policy.generation.{}", key);
}

class Work {
 public:
  explicit Work(const HydraConfig& config) : c_(config), recipe_(config.recipe()) {}

  void take() {
    const auto own = std::ranges::find_if(
        kAlgorithms, [&](const Algorithm& a) { return c_.said(a.block) != nullptr; });
    if (own == kAlgorithms.end())
      c_.refuse("grpo", "the recipe has no block of an algorithm", "grpo, dpo, rm or sft");
    recipe_.global_batch = c_.integer("policy.train_global_batch_size", 512);
    length_ = c_.integer("policy.max_total_sequence_length", 512);
    micro_ = c_.integer("policy.train_micro_batch_size", 1);
    recipe_.set("/workload/micro_batch", micro_, c_.origin("policy.train_micro_batch_size"));
    if (own->name.empty()) return supervise();
    recipe_.take_algorithm(std::string(own->name), c_.origin(own->block));
    if (own->generates)
      generate();
    else
      prefer(*own);
  }

 private:
  /// Rows that samples are joined into, or as many as a budget has room for; 0: neither.
  std::int64_t budget(std::string_view kind, std::string_view key) const {
    const std::string block = fmt::format("policy.{}.", kind);
    if (!c_.flag(block + "enabled", false)) return 0;
    return c_.integer(block + std::string(key), length_ * micro_);
  }
  std::int64_t tokens(std::string_view key) const {
    return std::max(budget("sequence_packing", key), budget("dynamic_batching", key));
  }

  void supervise() {
    std::int64_t rows = length_;
    if (const std::int64_t row = budget("sequence_packing", "train_mb_tokens"); row > 0) {
      recipe_.set("/workload/packing", true, c_.origin("policy.sequence_packing.enabled"));
      recipe_.set("/workload/micro_batch", 1, c_.origin("policy.sequence_packing.train_mb_tokens"));
      // A row has the tokens of as many full samples.
      *recipe_.global_batch = std::max<std::int64_t>(1, *recipe_.global_batch * length_ / row);
      rows = row;
    } else if (const std::int64_t all = budget("dynamic_batching", "train_mb_tokens"); all > 0) {
      recipe_.set("/workload/micro_batch", std::max<std::int64_t>(1, all / length_),
                  c_.origin("policy.dynamic_batching.train_mb_tokens"));
    }
    recipe_.set("/workload/sequence_length", rows, c_.origin("policy.max_total_sequence_length"));
  }

  void prefer(const Algorithm& algorithm) {
    recipe_.set("/workload/sequence_length", length_,
                c_.origin("policy.max_total_sequence_length"));
    if (algorithm.name == "dpo") take_reference(c_.number("dpo.reference_policy_kl_penalty", 0.05));
  }

  void generate() {
    const std::int64_t new_tokens = c_.integer(generation("max_new_tokens"), length_);
    take_lengths(std::min(new_tokens, length_));
    recipe_.generated = c_.integer("grpo.num_prompts_per_step", 32) *
                        c_.integer("grpo.num_generations_per_prompt", 16);
    const std::int64_t context =
        c_.integer(under_megatron(c_) ? "policy.megatron_cfg.context_parallel_size"
                                      : "policy.dtensor_cfg.context_parallel_size",
                   1);
    if (const std::int64_t all = tokens("train_mb_tokens"); all > 0) {
      recipe_.rlhf["token_budget"] = std::max(all / context, length_ / context);
      recipe_.rlhf["scoring_tokens"] = std::max(tokens("logprob_mb_tokens"), length_) / context;
    } else {
      recipe_.rlhf["scoring_batch"] = c_.integer("policy.logprob_batch_size", micro_);
    }
    take_reference(c_.number("loss_fn.reference_policy_kl_penalty", 0.0));
    take_rollout(c_);
  }

  /// The files limit prompt and answer together.
  void take_lengths(std::int64_t new_tokens) {
    const bool open = new_tokens == length_;
    const std::int64_t prompt =
        open ? std::max<std::int64_t>(1, std::min<std::int64_t>(512, length_ / 4))
             : length_ - new_tokens;
    recipe_.rlhf["prompt_length"] = prompt;
    recipe_.rlhf["new_tokens"] = length_ - prompt;
    c_.came_from("/workload/prompt_length", "policy.max_total_sequence_length");
    c_.came_from("/workload/new_tokens", generation("max_new_tokens"));
    if (open)
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = fmt::format("workload.prompt_length: {}", prompt),
                    .reason = "max_total_sequence_length is of prompt and answer together"});
  }

  /// Its weights wait on the host and take the place of the model's, which goes there meanwhile
  /// (workers, use_reference_model). Beside adapters the base is the same.
  void take_reference(double penalty) {
    if (penalty <= 0) {
      recipe_.rlhf["reference"] = "none";
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = "workload.reference: none",
                    .reason = "reference_policy_kl_penalty is 0"});
    } else if (!recipe_.lora.is_null()) {
      recipe_.rlhf["reference"] = "base";
    } else {
      recipe_.rlhf["models"]["reference"]["idle"] = "host";
    }
  }

  const HydraConfig& c_;
  Recipe& recipe_;
  std::int64_t length_ = 0, micro_ = 1;
};

/// What the engine's own block says, under vLLM or SGLang.
class Engine {
 public:
  explicit Engine(const HydraConfig& config) : c_(config), recipe_(config.recipe()) {}

  void take() {
    const std::string name = c_.text(generation("backend"), "vllm");
    if (name != "vllm" && name != "sglang")
      c_.refuse(generation("backend"), fmt::format("'{}' is not estimated", name),
                "vllm or sglang");
    rollout_["engine"] = name;
    // vllm_worker.py, _build_sampling_params: logprobs=0. A job under Megatron-LM names no trainer.
    if (c_.flag("policy.megatron_cfg.enabled", false)) rollout_["log_probabilities"] = true;
    name == "vllm" ? vllm() : sglang();
    const std::int64_t answers = c_.integer("grpo.num_generations_per_prompt", 16);
    if (answers > 1) rollout_["completions"] = answers;
    take_placement();
    recipe_.rlhf["rollout"] = std::move(rollout_);
    take_buffer();
  }

 private:
  void integer(const char* field, const std::string& key, std::int64_t otherwise) {
    rollout_[field] = c_.integer(key, otherwise);
    c_.came_from(fmt::format("/workload/rollout/{}", field), key);
  }
  void share(const std::string& key, double otherwise) {
    rollout_["gpu_memory_utilization"] = c_.number(key, otherwise);
    c_.came_from("/workload/rollout/gpu_memory_utilization", key);
  }
  void refuse_several(const std::string& key) const {
    if (c_.integer(key, 1) > 1) c_.refuse(key, "stages of an engine are not estimated", "1");
  }

  /// vllm_worker.py: asleep at level 1. Where it says nothing of passes, an engine on a GPU of 70
  /// GiB and more takes 16384 tokens and 1024 sequences (vLLM 0.20, engine/arg_utils.py,
  /// UsageContext.LLM_CLASS).
  void vllm() {
    const auto own = [](std::string_view key) {
      return generation(fmt::format("vllm_cfg.{}", key));
    };
    const auto more = [](std::string_view key) {
      return generation(fmt::format("vllm_kwargs.{}", key));
    };
    share(own("gpu_memory_utilization"), 0.6);
    integer("tensor_parallel", own("tensor_parallel_size"), 1);
    refuse_several(own("pipeline_parallel_size"));
    if (c_.integer(own("expert_parallel_size"), 1) > 1)
      integer("expert_parallel", own("expert_parallel_size"), 1);
    integer("max_num_batched_tokens", more("max_num_batched_tokens"), 16384);
    integer("max_num_seqs", more("max_num_seqs"), 1024);
    if (c_.said(more("block_size")) != nullptr) integer("block_size", more("block_size"), 16);
    if (c_.said(own("max_model_len")) != nullptr)
      integer("max_model_length", own("max_model_len"), 0);
    rollout_["sleep_level"] = 1;
    // worker_utils.py, resolve_distributed_executor_backend: Ray's, over which vLLM does not
    // schedule ahead (config/vllm.py). A job under Megatron-LM names no trainer.
    if (c_.flag("policy.megatron_cfg.enabled", false) && rollout_["tensor_parallel"] > 1)
      rollout_["async_scheduling"] = false;
    if (c_.flag(own("enforce_eager"), false)) rollout_["cuda_graphs"] = false;
    if (!c_.flag(own("enable_prefix_caching"), true)) rollout_["prefix_caching"] = false;
  }

  void sglang() {
    const auto own = [](std::string_view key) {
      return generation(fmt::format("sglang_cfg.{}", key));
    };
    share(own("mem_fraction_static"), 0.88);
    integer("tensor_parallel", own("tp_size"), 1);
    refuse_several(own("pp_size"));
    if (c_.said(own("max_running_requests")) != nullptr)
      integer("max_num_seqs", own("max_running_requests"), 256);
    if (c_.said(own("context_length")) != nullptr)
      integer("max_model_length", own("context_length"), 0);
    rollout_["sleep_level"] = 2;
    if (c_.flag(own("disable_cuda_graph"), false)) rollout_["cuda_graphs"] = false;
  }

  /// grpo.py, setup: on GPUs of its own the engine takes whole machines, or of one machine some.
  void take_placement() {
    const bool shares = c_.flag(generation("colocated.enabled"), true);
    rollout_["placement"] = shares ? "colocated" : "separate";
    if (shares) {
      recipe_.rlhf["models"]["actor"]["idle"] = "host";
      return;
    }
    if (c_.flag("policy.offload_optimizer_for_logprob", false))
      recipe_.rlhf["models"]["actor"]["idle"] = "optimizer";
    const std::string machines = generation("colocated.resources.num_nodes");
    const std::string gpus = generation("colocated.resources.gpus_per_node");
    const bool one = *recipe_.machines == 1;
    std::optional<std::int64_t>& all = one ? recipe_.per_machine : recipe_.machines;
    const std::string& key = one ? gpus : machines;
    const std::int64_t own = c_.integer(key, 0);
    if (own < 1 || own >= *all)
      c_.refuse(key,
                fmt::format("{} of {} leaves nothing for the trainer or the engine", own, *all),
                fmt::format("1 to {}", *all - 1));
    *all -= own;
    const std::int64_t per_machine = c_.integer(gpus, *recipe_.per_machine);
    rollout_["gpus"] = one ? own : own * per_machine;
    c_.came_from("/workload/rollout/gpus", key);
    if (one) rollout_["same_machines"] = true;
    rollout_.erase("sleep_level");
    if (c_.flag("grpo.async_grpo.enabled", false))  // grpo.py, async_grpo_train
      take_steps();
    recipe_.note({.kind = Note::Kind::assumed,
                  .field = one ? fmt::format("cluster: {} GPUs", *all)
                               : fmt::format("cluster: {} machines", *all),
                  .reason = "the engine has the others"});
  }

  /// Without weights that change under answers in flight, all of them are waited for at each
  /// hand-over, so that more than one step gains nothing (grpo.py, async_grpo_train).
  void take_steps() {
    integer("steps_off_policy", "grpo.async_grpo.max_trajectory_age_steps", 1);
    if (c_.flag("grpo.async_grpo.in_flight_weight_updates", false) ||
        rollout_["steps_off_policy"] <= 1)
      return;
    rollout_["steps_off_policy"] = 1;
    recipe_.note({.kind = Note::Kind::assumed,
                  .field = "workload.rollout.steps_off_policy: 1",
                  .reason = "without in_flight_weight_updates all answers are waited for"});
  }

  /// grpo.py, refit_policy_generation.
  void take_buffer() {
    const Json* size = c_.said("policy.refit_buffer_size_gb");
    if (size != nullptr)
      recipe_.rlhf["rollout"]["weight_bucket"] = static_cast<std::int64_t>(
          c_.number("policy.refit_buffer_size_gb", 0) * static_cast<double>(std::int64_t{1} << 30));
    else if (recipe_.rlhf["rollout"]["placement"] == "colocated")
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = "workload.rollout.weight_bucket: 0",
                    .reason = "weights go through a buffer of 30 % of what is free then, which "
                              "always fits"});
  }

  const HydraConfig& c_;
  Recipe& recipe_;
  Json rollout_ = Json::object();
};

}  // namespace

void take_rollout(const HydraConfig& config) {
  Engine(config).take();
}

void take_work(const HydraConfig& config) {
  Work(config).take();
}

}  // namespace shardplan::importing::nemo_rl
