// transformers' TrainingArguments (5.17) and TRL's configs (1.16), in JSON, YAML or as a program's
// arguments.
#include "import/kinds/kind.h"
#include "import/training_keys.h"
#include "import/vocabulary.h"

#include <array>

namespace shardplan::importing::training_arguments {
namespace {

bool is_training_arguments(const Document& d) {
  if (has_any(d, {"per_device_train_batch_size"})) return true;
  const bool trains = has_any(d, {"gradient_accumulation_steps", "num_train_epochs", "max_steps",
                                  "learning_rate", "gradient_checkpointing"});
  return trains && has_any(d, {"output_dir", "model_name_or_path", "optim", "bf16", "fp16"});
}

/// SFTConfig's and its siblings' own keys.
bool is_trl(const Document& d) {
  return has_any(d, {"max_length", "max_seq_length", "packing", "dataset_text_field",
                     "assistant_only_loss", "completion_only_loss", "padding_free", "use_peft",
                     "max_prompt_length", "max_completion_length", "num_generations", "loss_type",
                     "dataset_num_proc", "dataset_mixture", "dataset_mixer"}) ||
         d.program.starts_with("trl ");
}

/// What a config's own keys tell of the algorithm: nothing else in such a file does.
std::string algorithm_of(const Document& d) {
  const auto runs = [&](std::string_view word) {
    return d.program.find(word) != std::string::npos;
  };
  if (has_any(d, {"num_generations", "max_completion_length"}) || runs("grpo")) return "grpo";
  if (has_any(d, {"simpo_gamma", "cpo_alpha", "desirable_weight"})) return "";
  if (has_any(d, {"beta", "loss_type", "precompute_ref_log_probs"}) || runs("dpo")) return "dpo";
  return runs("reward") ? "reward" : "";
}

void read_mega_length(Key& key) {
  key.take("/workload/sequence_length", key.integer(1));
}

void read_prompt(Key& key) {
  key.recipe().rlhf["prompt_length"] = key.integer(1);
  key.took("workload.prompt_length");
}

void read_completion(Key& key) {
  key.recipe().rlhf["new_tokens"] = key.integer(1);
  key.took("workload.new_tokens");
}

void read_vllm(Key& key) {
  if (!key.flag()) return key.ignore("generation by the model itself");
  key.warn(
      "vLLM generates beside the trainer: where it shares the GPUs, what it holds there "
      "(vllm_gpu_memory_utilization) is not in the estimate");
}

void read_odd_loss(Key& key) {
  const std::string name = key.text();
  if (name == "orpo" || name == "kto" || name == "bco_pair")
    key.refuse("the loss '" + name + "' is not estimated",
               "sigmoid, ipo, hinge or another of DPO's");
  key.ignore("the losses of one trainer keep the same");
}

constexpr std::array kRules{
    KeyRule{"model_name_or_path", "", read_model},
    KeyRule{"model", "", read_model},
    KeyRule{"model_id", "", read_model},
    KeyRule{"model_name", "", read_model},
    KeyRule{"torch_dtype", "", read_weights_dtype},
    KeyRule{"dtype", "", read_weights_dtype},
    KeyRule{"attn_implementation", "", read_attention},
    KeyRule{"max_length", "", read_mega_length},
    KeyRule{"max_seq_length", "", read_mega_length},
    KeyRule{"model_max_length", "", read_mega_length},
    KeyRule{"block_size", "", read_mega_length},
    KeyRule{"packing", "/workload/packing", as_flag},
    KeyRule{"max_prompt_length", "", read_prompt},
    KeyRule{"max_completion_length", "", read_completion},
    KeyRule{"use_vllm", "", read_vllm},
    KeyRule{"loss_type", "", read_odd_loss},
};

const std::array kIgnored{
    IgnoredKeys{"the losses of one trainer keep the same",
                {"beta",
                 "alpha",
                 "label_smoothing",
                 "reward_*",
                 "rewards_*",
                 "scale_rewards",
                 "num_generations",
                 "temperature",
                 "top_p",
                 "top_k",
                 "min_p",
                 "epsilon*",
                 "mask_truncated_completions",
                 "cosine_*",
                 "repetition_*",
                 "code_*",
                 "vllm_*",
                 "sync_ref_model",
                 "ref_model_*",
                 "disable_dropout",
                 "rpo_alpha",
                 "delta",
                 "num_iterations",
                 "steps_per_generation",
                 "precompute_ref_log_probs",
                 "format_reward*",
                 "accuracy_reward*",
                 "max_num_train_samples",
                 "attn_kwargs",
                 "center_rewards_coefficient",
                 "parallel_code_exec_per_proc",
                 "e2b_*",
                 "morph_*",
                 "ignore_bias_buffers",
                 "generate_during_eval",
                 "use_logits_to_keep"}},
    IgnoredKeys{"rows are full or padded: the longest is estimated",
                {"padding_free", "packing_strategy", "padding", "max_packed*", "pad_*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

/// GRPO's batch counts completions, num_generations of them to a prompt (TRL 1.16, grpo_config.py).
void make_rlhf(Recipe& recipe, const std::string& algorithm) {
  recipe.algorithm = algorithm;
  if (algorithm != "grpo") {
    recipe.rlhf.erase("prompt_length");
    return;
  }
  if (!recipe.rlhf.contains("prompt_length")) recipe.rlhf["prompt_length"] = 512;
  if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
}

void read(const Document& d, Recipe& recipe) {
  read_keys(d, {&kOwn, &kTrainingKeys, &kLoraKeys}, recipe);
  const bool trl = is_trl(d);
  recipe.set_default("/trainer", trl ? "trl" : "hf_trainer");
  training_defaults(recipe);
  if (!trl) return;
  recipe.assume("/checkpointing", "full", "TRL's default, gradient_checkpointing");
  if (!recipe.bf16 && !recipe.fp16) {
    recipe.bf16 = true;
    recipe.note({.kind = Note::Kind::assumed, .field = "bf16", .reason = "TRL's default"});
  }
  const std::string algorithm = algorithm_of(d);
  if (algorithm != "grpo") recipe.assume("/workload/sequence_length", 1024, "TRL's max_length");
  if (!algorithm.empty()) make_rlhf(recipe, algorithm);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"training_arguments", "arguments of transformers' or TRL's trainer",
                 is_training_arguments, read};

}  // namespace shardplan::importing::training_arguments
