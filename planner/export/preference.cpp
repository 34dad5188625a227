// Several models as TRL's arguments (1.16): preference training and GRPO.
#include "export/preference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trainers/description.h"

namespace shardplan {
namespace {

/// The key that only this algorithm's config has, so that the file is known for one of them; where
/// DPO has it too, a name of the run tells them apart.
struct OwnKey {
  std::string_view algorithm, key;
  double value;
  std::string_view run_name = "";
};

constexpr std::array kOwnKeys{OwnKey{"dpo", "beta", 0.1},
                              OwnKey{"orpo", "beta", 0.1, "orpo"},
                              OwnKey{"kto", "desirable_weight", 1},
                              OwnKey{"cpo", "cpo_alpha", 1},
                              OwnKey{"reward", "center_rewards_coefficient", 0.01},
                              OwnKey{"grpo", "num_generations", 8}};

[[noreturn]] void refuse_work(std::string_view key, std::string message, std::string expected) {
  refuse_export(fmt::format("workload.{}", key), std::move(message), std::move(expected));
}

class PreferenceKeys {
 public:
  PreferenceKeys(TrainerFile& file, const Json& workload, const Job& job)
      : file_(file), work_(workload), rlhf_(*job.rlhf) {}

  void put() {
    refuse_others();
    own_key();
    file_.put("per_device_train_batch_size", work_.value("micro_batch", 1));
    file_.put("gradient_accumulation_steps", work_.value("gradient_accumulation", 1));
    if (rlhf_.description().generates) generation();
    reference();
    models();
    if (work_.contains("rollout")) rollout(work_.at("rollout"));
  }

 private:
  void refuse_others() const {
    constexpr auto kWritten = std::to_array<std::string_view>(
        {"kind", "algorithm", "micro_batch", "gradient_accumulation", "method", "lora", "tokens",
         "sequence_length", "prompt_length", "new_tokens", "reference", "models", "rollout"});
    for (const auto& [key, value] : work_.items())
      if (std::ranges::find(kWritten, std::string_view(key)) == kWritten.end())
        refuse_work(key, "is no argument of TRL's", "a job without it, or --as job");
  }

  void own_key() {
    const std::string_view name = rlhf_.description().name;
    const auto own = std::ranges::find(kOwnKeys, name, &OwnKey::algorithm);
    if (own == kOwnKeys.end())
      refuse_work("algorithm", fmt::format("TRL's arguments do not tell {}", name),
                  "dpo, orpo, kto, cpo, reward or grpo");
    const auto whole = static_cast<std::int64_t>(own->value);
    const bool is_whole = static_cast<double>(whole) == own->value;
    file_.put(own->key, is_whole ? Json(whole) : Json(own->value));
    if (!own->run_name.empty()) file_.put("run_name", own->run_name);
  }

  void generation() {
    file_.erase("max_length");
    file_.put("max_prompt_length", rlhf_.generation.workload.sequence_length);
    file_.put("max_completion_length", rlhf_.generation.workload.generation.new_tokens);
  }

  void reference() {
    const bool generates = rlhf_.description().generates;
    if (rlhf_.reference == ReferenceModel::precomputed) file_.put("precompute_ref_log_probs", true);
    if (rlhf_.reference == ReferenceModel::copy && file_.lora())
      refuse_work("reference", "with adapters TRL asks the base in place of a copy", "base");
    if (generates) file_.put("beta", rlhf_.reference == ReferenceModel::none ? 0.0 : 0.04);
  }

  /// A reference that stays in 16 bits is what FSDP's cast leaves of a model loaded so.
  void models() {
    const auto given = work_.find("models");
    if (given == work_.end() || given->empty()) return;
    const std::string half = file_.half();
    const Json left{{"reference", {{"precision", half + "-pure"}}}};
    if (*given != left || file_.style() != "autocast" || !file_.shards_parameters())
      refuse_work("models", "TRL's arguments say nothing of single models",
                  "one model, or --as job");
    file_.put("dtype", half == "bf16" ? "bfloat16" : "float16");
  }

  /// grpo_config.py; generation/vllm_generation.py has 4096 tokens a pass.
  void rollout(const Json& engine) {
    for (const auto& [key, value] : engine.items()) {
      const bool usual = (key == "engine" && value == "vllm") || key == "placement" ||
                         // of the server, which another command starts
                         key == "gpus" || key == "same_machines" ||
                         (key == "max_num_batched_tokens" && value == 4096) ||
                         key == "gpu_memory_utilization" || key == "tensor_parallel" ||
                         (key == "completions" && value > 1) ||
                         (key == "prefix_caching" && value == true) ||
                         (key == "sleep_level" && (value == 0 || value == 2));
      if (!usual)
        refuse_work(fmt::format("rollout.{}", key),
                    fmt::format("{} is none of TRL's", value.dump()),
                    "vllm, 4096 max_num_batched_tokens, sleep_level 0 or 2");
    }
    if (!engine.contains("max_num_batched_tokens"))
      refuse_work("rollout.max_num_batched_tokens", "missing, and TRL has a number of its own",
                  "4096");
    if (!engine.contains("completions"))
      refuse_work("rollout.completions", "missing, and TRL has a number of its own", "8");
    file_.put("num_generations", engine.at("completions"));
    file_.put("use_vllm", true);
    const bool apart = engine.value("placement", "colocated") == "separate";
    file_.put("vllm_mode", apart ? "server" : "colocate");
    if (engine.contains("gpu_memory_utilization"))
      file_.put("vllm_gpu_memory_utilization", engine.at("gpu_memory_utilization"));
    if (engine.contains("tensor_parallel"))
      file_.put("vllm_tensor_parallel_size", engine.at("tensor_parallel"));
    if (engine.value("sleep_level", 0) == 2) file_.put("vllm_enable_sleep_mode", true);
  }

  TrainerFile& file_;
  const Json& work_;
  const Rlhf& rlhf_;
};

}  // namespace

void put_preference(TrainerFile& file, const Json& asked, const Job& job) {
  if (job.plan.trainer->head_loss == nullptr)
    refuse_export("trainer", "several models are written for TRL", "trl");
  PreferenceKeys(file, asked.at("workload"), job).put();
}

}  // namespace shardplan
