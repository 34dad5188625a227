// transformers' TrainingArguments (5.17) and TRL's configs (1.16), in JSON, YAML or as a program's
// arguments.
#include "import/kinds/kind.h"
#include "import/preference.h"
#include "import/program_keys.h"
#include "import/training_keys.h"
#include "import/vocabulary.h"
#include "lowering/rlhf/algorithms.h"

#include <algorithm>
#include <array>
#include <cctype>

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
                     "max_staleness", "dataset_num_proc", "dataset_mixture", "dataset_mixer"}) ||
         d.program.starts_with("trl ");
}

/// A word of the run's names: "zephyr-orpo-141b" is one of ORPO's.
std::string algorithm_in_names(const Document& d) {
  for (const char* key : {"hub_model_id", "run_name", "output_dir"}) {
    const Json* value = value_below(d.value, key);
    if (value == nullptr || !value->is_string()) continue;
    std::string word;
    for (const char c : value->get<std::string>() + "-") {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
        word += c;
        continue;
      }
      const std::string name = algorithm_word(word);
      if (!name.empty()) return name;
      word.clear();
    }
  }
  return "";
}

/// SFTConfig has losses too (TRL 1.16, sft_config.py).
bool has_preference_loss(const Document& d) {
  const Json* loss = value_below(d.value, "loss_type");
  return loss != nullptr && *loss != "nll" && *loss != "dft" && *loss != "chunked_nll";
}

/// What a config's own keys tell of the algorithm, or its program, or else the names that the run
/// was given.
std::string algorithm_of(const Document& d) {
  for (const AlgorithmDescription& a : kAlgorithmDescriptions)
    if (a.algorithm != Algorithm::sft && d.program.find(a.name) != std::string::npos)
      return std::string(a.name);
  // Beside max_length, which GRPO has not, answers are given and cut (DPO, KTO, ORPO).
  const bool cuts_answers = has_any(d, {"max_completion_length"}) && has_any(d, {"max_length"});
  if (has_any(d, {"num_generations", "max_staleness"})) return "grpo";
  if (has_any(d, {"max_completion_length"}) && !cuts_answers) return "grpo";
  if (has_any(d, {"desirable_weight", "undesirable_weight"})) return "kto";
  if (has_any(d, {"simpo_gamma", "cpo_alpha"})) return "cpo";
  if (has_any(d, {"center_rewards_coefficient"})) return "reward";
  const bool prefers = cuts_answers ||
                       has_any(d, {"beta", "precompute_ref_log_probs", "rpo_alpha"}) ||
                       has_preference_loss(d);
  if (!prefers) return "";
  const std::string named = algorithm_in_names(d);
  return named.empty() || named == "reward" ? "dpo" : named;
}

void read_mega_length(Key& key) {
  key.take("/workload/sequence_length", key.integer(1));
}

/// Colocated, 0.3 of the GPU, 4096 tokens a pass (grpo_config.py, generation/vllm_generation.py).
void read_vllm(Key& key) {
  read_vllm_engine(key, {.utilization = 0.3, .batched_tokens = 4096});
}

void read_loss(Key& key) {
  // A list of losses, weighted, is one of DPO's.
  const std::vector<std::string> names = key.list();
  for (const std::string& name : names) {
    const bool own = name == "kto" || name == "apo_zero_unpaired" || name == "simpo";
    if (own && names.size() == 1) {
      key.recipe().take_algorithm(name == "simpo" ? "cpo" : "kto", key.origin());
      return key.took("workload.algorithm: " + key.recipe().algorithm);
    }
  }
  key.ignore("the losses of one trainer keep the same");
}

void read_distilled_tokens(Key& key) {
  if (key.document().program.find("gkd") == std::string::npos)
    return key.ignore("what is generated between steps");
  read_new_tokens(key);
}

/// Read with the teacher.
void read_with_teacher(Key& key) {
  key.ignore("whose answers are trained on: taken with the algorithm");
}

/// experimental/gkd: the model that the student learns from.
void read_teacher(Key& key) {
  key.recipe().rlhf["models"]["reference"]["model"] = key.text();
  key.took("workload.models.reference.model");
}

/// Read with the engine.
void read_with_server(Key& key) {
  key.ignore("how far the engine runs ahead: taken with workload.rollout");
}

constexpr std::array kRules{
    KeyRule{"teacher_model_name_or_path", "", read_teacher},
    KeyRule{"max_new_tokens", "", read_distilled_tokens},
    KeyRule{"lmbda", "", read_with_teacher},
    KeyRule{"seq_kd", "", read_with_teacher},
    KeyRule{"model_name_or_path", "", read_model},
    KeyRule{"model", "", read_model},
    KeyRule{"model_id", "", read_model},
    KeyRule{"model_name", "", read_model},
    KeyRule{"torch_dtype", "", read_weights_dtype},
    KeyRule{"dtype", "", read_weights_dtype},
    KeyRule{"attn_implementation", "", read_attention},
    KeyRule{"max_length", "", read_mega_length},
    KeyRule{"max_seq_length", "", read_mega_length},
    KeyRule{"max_seq_len", "", read_mega_length},
    KeyRule{"model_max_length", "", read_mega_length},
    KeyRule{"block_size", "", read_mega_length},
    KeyRule{"packing", "/workload/packing", as_flag},
    KeyRule{"max_prompt_length", "", read_prompt_tokens},
    KeyRule{"max_completion_length", "", read_new_tokens},
    KeyRule{"use_vllm", "", read_vllm},
    KeyRule{"max_staleness", "", read_with_server},
    KeyRule{"max_inflight_tasks", "", read_with_server},
    KeyRule{"weight_sync_steps", "", read_with_server},
    KeyRule{"loss_type", "", read_loss},
    KeyRule{"beta", "", read_beta},
    KeyRule{"precompute_ref_log_probs", "", read_precomputed},
    KeyRule{"num_generations", "", read_completions},
    KeyRule{"num_ppo_epochs", "", refuse_if_said},
};

const std::array kIgnored{
    IgnoredKeys{"the losses of one trainer keep the same",
                {"alpha",
                 "label_smoothing",
                 "reward_*",
                 "rewards_*",
                 "scale_rewards",
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
                 "format_reward*",
                 "accuracy_reward*",
                 "max_num_train_samples",
                 "attn_kwargs",
                 "center_rewards_coefficient",
                 "desirable_weight",
                 "undesirable_weight",
                 "simpo_gamma",
                 "cpo_alpha",
                 "parallel_code_exec_per_proc",
                 "e2b_*",
                 "morph_*",
                 "ignore_bias_buffers",
                 "generate_during_eval",
                 "use_logits_to_keep"}},
    IgnoredKeys{"of the engine's server and of its queue",
                {"queue_maxsize", "request_timeout", "max_tool_calling_iterations",
                 "fork_threshold_tokens", "delta_sync_*"}},
    IgnoredKeys{"rows are full or padded: the longest is estimated",
                {"padding_free", "packing_strategy", "padding", "max_packed*", "pad_*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

/// gkd_config.py: max_length of what is given, and max_new_tokens behind it.
void distil(const Document& d, Recipe& recipe) {
  if (!recipe.rlhf.contains("models"))
    throw InputError({.file = d.file,
                      .key = "teacher_model_name_or_path",
                      .message = "missing: distillation has a teacher",
                      .expected = "its name"});
  recipe.rlhf.erase("prompt_length");
  if (!generates(recipe)) return;
  recipe.rlhf["prompt_length"] = *recipe.find("/workload/sequence_length");
  if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 128;
}

/// max_completion_length cuts answers that are given, so that the rest of a full sequence is its
/// prompt, which is not scored. max_prompt_length says nothing: a prompt may be shorter.
void answers_given(Recipe& recipe) {
  const Json* length = recipe.find("/workload/sequence_length");
  const Json answer = recipe.rlhf.value("new_tokens", Json());
  recipe.rlhf.erase("prompt_length");
  recipe.rlhf.erase("new_tokens");
  if (answer.is_null() || length == nullptr || *length <= answer) return;
  recipe.rlhf["prompt_length"] = length->get<std::int64_t>() - answer.get<std::int64_t>();
  recipe.note({.kind = Note::Kind::took,
               .key = "max_completion_length",
               .field = "workload.prompt_length, the rest of max_length"});
}

/// AsyncGRPOConfig's own keys, or a program that has the class.
bool is_asynchronous(const Document& d) {
  return has_any(d, {"max_staleness", "max_inflight_tasks", "weight_sync_steps"}) ||
         d.program.find("async_grpo") != std::string::npos ||
         d.program.find("asyncgrpo") != std::string::npos;
}

/// experimental/async_grpo/async_grpo_config.py: a server of vLLM's on GPUs of its own runs
/// max_staleness steps ahead. No reference is asked, and old scores are the engine's.
void run_ahead(const Document& d, Recipe& recipe) {
  const auto count = [&](const char* key, std::int64_t usual) {
    const Json* said = value_below(d.value, key);
    return said != nullptr && said->is_number_integer() ? said->get<std::int64_t>() : usual;
  };
  Json engine{{"engine", "vllm"},
              {"placement", "separate"},
              {"completions", count("num_generations", 8)},
              {"steps_off_policy", std::max<std::int64_t>(1, count("max_staleness", 4))}};
  if (const std::int64_t tasks = count("max_inflight_tasks", -1); tasks > 0)
    engine["answers_in_work"] = tasks;
  recipe.rlhf["rollout"] = std::move(engine);
  recipe.rlhf["reference"] = "none";
  if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 2048;
  if (count("weight_sync_steps", 1) > 1)
    recipe.note({.kind = Note::Kind::warning,
                 .key = "weight_sync_steps",
                 .reason = "weights are taken to be handed over after each step, which takes "
                           "longer"});
}

/// GRPO's batch counts completions, num_generations of them to a prompt (TRL 1.16, grpo_config.py).
void make_rlhf(const Document& d, Recipe& recipe, const std::string& algorithm) {
  recipe.algorithm = algorithm;
  settle_distillation(d, recipe);
  if (recipe.algorithm != algorithm || algorithm == "gkd") return distil(d, recipe);
  settle_reference(recipe, 0);  // grpo_config.py
  if (algorithm != "grpo") return answers_given(recipe);
  if (is_asynchronous(d)) run_ahead(d, recipe);
  if (!recipe.rlhf.contains("prompt_length")) recipe.rlhf["prompt_length"] = 512;
  if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
}

void read(const Document& d, Recipe& recipe) {
  read_keys(d, {&kOwn, &kTrainingKeys, &kLoraKeys, &kProgramKeys}, recipe);
  if (trains_all(d)) recipe.lora = Json();
  const bool trl = is_trl(d);
  recipe.set_default("/trainer", trl ? "trl" : "hf_trainer");
  training_defaults(recipe);
  if (!trl) return;
  if (!recipe.beside_lora.contains("dropout"))
    recipe.beside_lora["dropout"] = 0.05;  // model_config.py, lora_dropout
  recipe.assume("/checkpointing", "full", "TRL's default, gradient_checkpointing");
  if (!recipe.bf16 && !recipe.fp16) {
    recipe.bf16 = true;
    recipe.note({.kind = Note::Kind::assumed, .field = "bf16", .reason = "TRL's default"});
  }
  const std::string algorithm = recipe.algorithm.empty() ? algorithm_of(d) : recipe.algorithm;
  if (algorithm != "grpo") recipe.assume("/workload/sequence_length", 1024, "TRL's max_length");
  if (algorithm.empty()) return;
  make_rlhf(d, recipe, algorithm);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"training_arguments", "arguments of transformers' or TRL's trainer",
                 is_training_arguments, read};

}  // namespace shardplan::importing::training_arguments
