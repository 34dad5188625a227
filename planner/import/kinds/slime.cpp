// slime's launch scripts (624b824a, August 2026: slime/utils/arguments.py): Megatron-LM's arguments
// for what trains, and its own for rollouts in SGLang.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "import/engine_gpus.h"
#include "import/kinds/hydra_config.h"
#include "import/kinds/kind.h"
#include "import/kinds/megatron.h"
#include "import/kinds/slime_ignored.h"
#include "import/vocabulary.h"

namespace shardplan::importing::slime {
namespace {

using Arguments = HydraConfig;

bool is_slime(const Document& d) {
  return has_any(d, {"hf_checkpoint"}) &&
         has_any(d, {"rollout_batch_size", "actor_num_nodes", "rollout_function_path"});
}

/// Its value is read with those of other arguments.
void read_with_others(Key&) {}

/// "/models/Qwen3-30B-A3B-FP8" is the checkpoint of its engines; what trains is in 16 bits.
void read_checkpoint(Key& key) {
  std::string name = key.text();
  while (name.ends_with('/')) name.pop_back();
  if (key.recipe().has_model || name.empty() || !resolved_path(name, key.document().file).empty())
    return read_model(key);
  std::string_view narrow;
  for (const char* ending : {"-FP8", "-INT4", "-NVFP4"})
    if (name.ends_with(ending)) narrow = ending;
  key.take("/model", name.substr(0, name.size() - narrow.size()));
  if (!narrow.empty()) key.warn("the engine's weights are estimated in 16 bits, which is more");
}

void read_backend(Key& key) {
  if (key.text() != "megatron")
    key.refuse(fmt::format("'{}' trains otherwise", key.text()), "megatron");
  key.ignore("Megatron-LM, as it does unless told otherwise");
}
void warn_of_drafts(Key& key) {
  key.warn("drafts of tokens are not estimated: the engine needs more memory and less time");
}
void warn_of_attention(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("attention is estimated as divided among all GPUs of an engine");
}
void warn_of_teacher(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("a teacher is not estimated");
}
void warn_of_engine_file(Key& key) {
  key.warn("engines that differ from each other are not estimated");
}
/// Parts of the logits are scored at a time.
void read_chunks(Key& key) {
  if (!key.value().is_number() || key.value().get<double>() <= 0) return key.ignore("all at once");
  key.warn("log-probabilities are estimated over all logits, which is more");
}
void read_cache_dtype(Key& key) {
  if (key.text() == "auto") return key.ignore("as the weights compute");
  key.warn("the engine's cache is estimated in 16 bits, which is more");
}

constexpr std::array kRules{
    KeyRule{"train_backend", "", read_backend},
    KeyRule{"use_opd", "", warn_of_teacher},
    KeyRule{"log_probs_chunk_size", "", read_chunks},
    KeyRule{"freeze_params_name_list", "", warn_if_larger},
    KeyRule{"only_train_params_name_list", "", warn_if_larger},
    KeyRule{"sglang_kv_cache_dtype", "", read_cache_dtype},
    KeyRule{"sglang_speculative_algorithm", "", warn_of_drafts},
    KeyRule{"sglang_enable_dp_attention", "", warn_of_attention},
    KeyRule{"sglang_config", "", warn_of_engine_file},
};

constexpr auto kTogether = std::to_array<std::string_view>({"actor_num_nodes",
                                                            "actor_num_gpus_per_node",
                                                            "colocate",
                                                            "offload",
                                                            "offload_train",
                                                            "offload_rollout",
                                                            "no_offload_train",
                                                            "no_offload_rollout",
                                                            "multimodal_keys",
                                                            "rollout_num_gpus",
                                                            "rollout_num_gpus_per_engine",
                                                            "rollout_batch_size",
                                                            "n_samples_per_prompt",
                                                            "rollout_max_prompt_len",
                                                            "rollout_max_response_len",
                                                            "rollout_max_context_len",
                                                            "num_steps_per_rollout",
                                                            "use_dynamic_batch_size",
                                                            "max_tokens_per_gpu",
                                                            "log_probs_max_tokens_per_gpu",
                                                            "advantage_estimator",
                                                            "use_kl_loss",
                                                            "kl_coef",
                                                            "entropy_coef",
                                                            "loss_type",
                                                            "debug_train_only",
                                                            "over_sampling_batch_size",
                                                            "partial_rollout",
                                                            "rollout_function_path",
                                                            "update_weights_interval",
                                                            "update_weight_buffer_size",
                                                            "sglang_mem_fraction_static",
                                                            "sglang_chunked_prefill_size",
                                                            "sglang_max_running_requests",
                                                            "sglang_context_length",
                                                            "sglang_page_size",
                                                            "sglang_disable_cuda_graph",
                                                            "sglang_disable_radix_cache",
                                                            "sglang_ep_size",
                                                            "sglang_expert_parallel_size"});

const std::vector<KeyRule>& all_rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(kRules.begin(), kRules.end());
    for (const std::string_view key : kTogether) all.push_back({key, "", read_with_others});
    return all;
  }();
  return kAll;
}

/// Estimators without a critic (slime/utils/arguments.py, advantage_estimator).
constexpr std::array<std::string_view, 6> kWithoutCritic{"grpo",
                                                         "gspo",
                                                         "cispo",
                                                         "reinforce_plus_plus",
                                                         "reinforce_plus_plus_baseline",
                                                         "on_policy_distillation"};

class Composer {
 public:
  explicit Composer(const Arguments& a) : a_(a), recipe_(a.recipe()) {}

  void run() {
    recipe_.machines = a_.integer("actor_num_nodes", 1);
    recipe_.per_machine = a_.integer("actor_num_gpus_per_node", 8);
    if (a_.text("loss_type", "policy_loss") == "sft_loss") return supervise();
    take_algorithm();
    take_lengths();
    take_batches();
    take_models();
    if (!a_.flag("debug_train_only", false)) take_rollout();
  }

 private:
  std::int64_t degree(const char* name) const {
    const Json* value = recipe_.find(fmt::format("/parallel/{}", name));
    return value == nullptr ? 1 : value->get<std::int64_t>();
  }
  /// GPUs that share a sample's tokens.
  std::int64_t sharing() const { return degree("context") * degree("sequence"); }
  std::int64_t gpus() const { return *recipe_.machines * *recipe_.per_machine; }
  std::int64_t length() const {
    return recipe_.rlhf["prompt_length"].get<std::int64_t>() +
           recipe_.rlhf["new_tokens"].get<std::int64_t>();
  }
  std::int64_t answers() const { return a_.integer("n_samples_per_prompt", 1); }
  bool colocated() const { return a_.flag("colocate", false); }

  /// Samples are packed to as many tokens as a GPU takes (backends/megatron_utils/data.py).
  void supervise() {
    recipe_.global_batch.reset();
    const bool packs = a_.flag("use_dynamic_batch_size", false);
    if (!packs) {
      recipe_.global_batch = a_.integer("global_batch_size", 1);
      recipe_.set_default("/workload/sequence_length", a_.integer("seq_length", 4096));
      return;
    }
    recipe_.set("/workload/micro_batch", 1, a_.origin("use_dynamic_batch_size"));
    recipe_.job["workload"].erase("sequence_length");
    recipe_.set("/workload/sequence_length", a_.integer("max_tokens_per_gpu", 4096) * sharing(),
                a_.origin("max_tokens_per_gpu"));
    recipe_.note({.kind = Note::Kind::warning,
                  .key = "global_batch_size",
                  .reason = "samples have no known length: a step is one full pass of each GPU"});
  }

  void take_algorithm() {
    const std::string estimator = a_.text("advantage_estimator", "grpo");
    const bool critic = estimator == "ppo";
    if (!critic && std::ranges::find(kWithoutCritic, estimator) == kWithoutCritic.end())
      a_.refuse("advantage_estimator", fmt::format("'{}' is not estimated", estimator),
                fmt::format("ppo, {}", fmt::join(kWithoutCritic, ", ")));
    recipe_.take_algorithm(critic ? "ppo" : "grpo", a_.origin("advantage_estimator"));
    if (critic) recipe_.rlhf["rewards"] = "function";
  }

  void take_lengths() {
    const std::int64_t answer = a_.integer("rollout_max_response_len", 0);
    if (answer == 0)
      a_.refuse("rollout_max_response_len", "the script does not say how long answers are",
                "tokens");
    const std::int64_t context = a_.integer("rollout_max_context_len", 0);
    constexpr std::int64_t kUsual = 512;
    const std::int64_t otherwise = context > answer ? context - answer : kUsual;
    const std::int64_t prompt = a_.integer("rollout_max_prompt_len", otherwise);
    recipe_.rlhf["prompt_length"] = prompt;
    recipe_.rlhf["new_tokens"] = answer;
    a_.came_from("/workload/prompt_length", "rollout_max_prompt_len");
    a_.came_from("/workload/new_tokens", "rollout_max_response_len");
    if (a_.said("rollout_max_prompt_len") == nullptr)
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = fmt::format("workload.prompt_length: {}", prompt),
                    .reason = "the script does not say how long prompts are"});
    recipe_.job["workload"].erase("sequence_length");  // Megatron-LM's, which slime does not use
  }

  /// A sample that is longer than the budget is a micro-batch of its own.
  std::int64_t budget(const char* key, std::int64_t otherwise) const {
    const std::int64_t least = (length() + sharing() - 1) / sharing();
    return std::max(a_.integer(key, otherwise), least);
  }

  void take_batches() {
    recipe_.generated = a_.integer("rollout_batch_size", 1) * answers();
    const std::int64_t steps = a_.integer("num_steps_per_rollout", 0);
    recipe_.global_batch =
        a_.integer("global_batch_size", *recipe_.generated / std::max<std::int64_t>(1, steps));
    if (!a_.flag("use_dynamic_batch_size", false)) {
      const Json* micro = recipe_.find("/workload/micro_batch");
      recipe_.rlhf["scoring_batch"] = micro == nullptr ? Json(1) : *micro;
      return;
    }
    const std::int64_t tokens = a_.integer("max_tokens_per_gpu", 4096);
    const std::int64_t held = budget("max_tokens_per_gpu", 4096);
    recipe_.rlhf["token_budget"] = held;
    recipe_.rlhf["scoring_tokens"] = budget("log_probs_max_tokens_per_gpu", tokens);
    a_.came_from("/workload/token_budget", "max_tokens_per_gpu");
    a_.came_from("/workload/scoring_tokens", "log_probs_max_tokens_per_gpu");
    if (held > tokens)
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = fmt::format("workload.token_budget: {}", held),
                    .reason = fmt::format(
                        "{} tokens a GPU hold no sample of {}: it is a micro-batch of its own",
                        tokens, length())});
    recipe_.job["workload"].erase("micro_batch");
    recipe_.set("/workload/micro_batch", std::max<std::int64_t>(1, held * sharing() / length()),
                a_.origin("max_tokens_per_gpu"));
    recipe_.micro_batch_at_most = true;
  }

  /// torch_memory_saver takes weights, gradients and states off the GPU between the turns, of
  /// everything that trains (actor.py, sleep). A reference's weights are on the host and take the
  /// actor's place (_switch_model): they are estimated beside it while it scores.
  void take_models() {
    const bool critic = recipe_.algorithm == "ppo";
    const bool together = a_.flag("offload", false) || colocated();
    const bool sleeps =
        critic || a_.flag("offload_train", together && !a_.flag("no_offload_train", false));
    Json models = Json::object();
    if (sleeps) models["actor"]["idle"] = "host";
    if (sleeps && critic) models["critic"]["idle"] = "host";
    if (a_.flag("use_kl_loss", false) || a_.number("kl_coef", 0) != 0)
      models["reference"]["idle"] = "host";
    else
      recipe_.rlhf["reference"] = "none";
    if (!models.empty()) recipe_.rlhf["models"] = std::move(models);
    // loss.py, get_log_probs_and_entropy: without a gradient where it has no weight in the loss.
    if (a_.number("entropy_coef", 0) != 0) recipe_.rlhf["entropy"] = "compiled";
  }

  void take_rollout() {
    const std::int64_t ranks = a_.integer("rollout_num_gpus_per_engine", 1);
    Json rollout{{"engine", "sglang"},
                 {"placement", colocated() ? "colocated" : "separate"},
                 {"tensor_parallel", ranks},
                 {"weight_bucket", a_.integer("update_weight_buffer_size", 512 << 20)}};
    a_.came_from("/workload/rollout/tensor_parallel", "rollout_num_gpus_per_engine");
    if (colocated()) {
      // Weights are not kept on the host: the actor's come next (ray/rollout.py, offload).
      rollout["sleep_level"] = a_.flag("no_offload_rollout", false) ? 0 : 2;
    } else {
      take_engine_gpus(rollout, recipe_, a_.integer("rollout_num_gpus", gpus()), *recipe_.machines);
      a_.came_from("/workload/rollout/gpus", "rollout_num_gpus");
      // train_async.py generates the next batch while it trains.
      if (a_.document().program.find("async") != std::string::npos)
        rollout["steps_off_policy"] = a_.integer("update_weights_interval", 1);
    }
    if (answers() > 1) rollout["completions"] = answers();
    take_engine(rollout);
    // Answers that are under way when enough have ended go on in the next iteration.
    const std::int64_t more = a_.integer("over_sampling_batch_size", 0);
    if (a_.flag("partial_rollout", false) && more > a_.integer("rollout_batch_size", 1))
      rollout["answers_in_work"] = more * answers();
    recipe_.rlhf["rollout"] = std::move(rollout);
  }

  /// SGLang's own arguments, with its name in front of each.
  void take_engine(Json& rollout) const {
    if (a_.said("sglang_mem_fraction_static") != nullptr)
      rollout["gpu_memory_utilization"] = a_.number("sglang_mem_fraction_static", 0);
    a_.came_from("/workload/rollout/gpu_memory_utilization", "sglang_mem_fraction_static");
    const auto integer = [&](const char* field, const char* key) {
      if (const std::int64_t value = a_.integer(key, 0); value > 0) rollout[field] = value;
      a_.came_from(fmt::format("/workload/rollout/{}", field), key);
    };
    integer("max_num_batched_tokens", "sglang_chunked_prefill_size");
    integer("max_num_seqs", "sglang_max_running_requests");
    integer("max_model_length", "sglang_context_length");
    integer("block_size", "sglang_page_size");
    integer("expert_parallel", "sglang_ep_size");
    integer("expert_parallel", "sglang_expert_parallel_size");
    if (a_.flag("sglang_disable_cuda_graph", false)) rollout["cuda_graphs"] = false;
    if (a_.flag("sglang_disable_radix_cache", false)) rollout["prefix_caching"] = false;
  }

  const Arguments& a_;
  Recipe& recipe_;
};

void read(const Document& d, Recipe& recipe) {
  // Its optimizer's states are always divided, and it computes in bf16 unless told fp16
  // (backends/megatron_utils/arguments.py, _set_default_megatron_args).
  if (!has_any(d, {"fp16", "bf16"}))
    recipe.assume("/precision", "bf16-master", "slime's own, unless told fp16");
  recipe.texts = !has_any(d, {"multimodal_keys"});
  // First the network, whose layers others ask for.
  if (const Json* name = value_below(d.value, "hf_checkpoint")) {
    Key key(d, "hf_checkpoint", *name, "", recipe);
    read_checkpoint(key);
  }
  Document others = d;
  others.value.erase("hf_checkpoint");
  const KeyTable own{all_rules(), slime_ignored_keys()};
  read_megatron_arguments(others, recipe, &own);
  recipe.job["framework"]["distributed_optimizer"] = true;
  Composer(Arguments(d, recipe)).run();
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"slime", "a launch script of slime", is_slime, read};

}  // namespace shardplan::importing::slime
