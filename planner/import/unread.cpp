#include "import/unread.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "import/kinds/kind.h"

namespace shardplan::importing {
namespace {

bool has_below(const Json& value, const char* block, const char* key) {
  return value.contains(block) && value.at(block).is_object() && value.at(block).contains(key);
}

/// What a recipe makes is named by "_component_", most of it the library's own.
bool is_torchtune(const Json& value) {
  return std::any_of(value.begin(), value.end(), [](const Json& part) {
    const Json* made = part.is_object() ? value_below(part, "_component_") : nullptr;
    return made != nullptr && made->is_string() &&
           made->get_ref<const std::string&>().starts_with("torchtune.");
  });
}

bool is_litgpt(const Json& value) {
  return has_below(value, "train", "global_batch_size") &&
         has_below(value, "train", "micro_batch_size");
}

bool is_nanotron(const Json& value) {
  return has_below(value, "parallelism", "dp") && has_below(value, "tokens", "micro_batch_size");
}

/// A fork of verl with keys of its own.
bool is_easyr1(const Json& value) {
  return has_below(value, "worker", "actor") && has_below(value, "data", "rollout_batch_size");
}

/// Its YAML has DeepSpeed's keys beside its own, and its network is Megatron-LM's.
bool is_gpt_neox(const Document& d) {
  return !d.is_command() && has_any(d, {"pipe_parallel_size", "pipe-parallel-size"});
}

bool is_arctic_training(const Json& value) {
  return has_below(value, "model", "name_or_path") && has_below(value, "data", "sources");
}

/// Trainer and generation are blocks of one file, or of one each.
bool is_prime_rl(const Json& value) {
  const bool whole =
      value.contains("orchestrator") && (value.contains("trainer") || value.contains("deployment"));
  return whole || (has_below(value, "model", "name") && has_below(value, "optim", "lr") &&
                   (value.contains("ckpt") || has_below(value, "data", "seq_len")));
}

bool is_areal(const Json& value) {
  return value.contains("experiment_name") && has_below(value, "actor", "experiment_name");
}

bool is_align_anything(const Json& value) {
  return value.contains("train_cfgs") && value.contains("model_cfgs");
}

bool is_primus(const Json& value) {
  return has_below(value, "modules", "pre_trainer") || has_below(value, "modules", "post_trainer");
}

bool is_skyrl(const Document& d) {
  return has_any(d, {"trainer.policy.model.path"});
}

bool is_leap_finetune(const Json& value) {
  return value.contains("training_type") && value.contains("training_config");
}

/// `llamafactory-cli chat` and `export` read the same keys as `train`.
bool is_llamafactory_without_training(const Json& value) {
  return value.contains("model_name_or_path") && value.contains("template") &&
         (value.contains("infer_backend") || value.contains("export_dir")) &&
         !value.contains("stage");
}

}  // namespace

void refuse_unread(const Document& document) {
  const Json& value = document.value;
  if (!value.is_object()) return;
  const Json schema = value.value("schema", Json());
  if (schema.is_string() && schema.get_ref<const std::string&>().starts_with("shardplan.job"))
    throw InputError({.file = document.file,
                      .message = "is a job, which is whole by itself",
                      .expected = "it alone, or a trainer's files"});
  if (is_llamafactory_without_training(value))
    throw InputError({.file = document.file,
                      .key = value.contains("export_dir") ? "export_dir" : "infer_backend",
                      .message = "the file saves a model or talks with one, and trains nothing",
                      .expected = "the file of `llamafactory-cli train`"});
  const char* trainer = is_torchtune(value)         ? "torchtune"
                        : is_litgpt(value)          ? "LitGPT"
                        : is_nanotron(value)        ? "nanotron"
                        : is_easyr1(value)          ? "EasyR1"
                        : is_gpt_neox(document)     ? "GPT-NeoX"
                        : is_arctic_training(value) ? "ArcticTraining"
                        : is_prime_rl(value)        ? "prime-rl"
                        : is_areal(value)           ? "AReaL"
                        : is_align_anything(value)  ? "align-anything"
                        : is_primus(value)          ? "Primus"
                        : is_skyrl(document)        ? "SkyRL"
                        : is_leap_finetune(value)   ? "leap-finetune"
                                                    : nullptr;
  if (trainer == nullptr) return;
  throw InputError({.file = document.file,
                    .message = fmt::format("is a file of {}, which is not read", trainer),
                    .expected = "`shardplan fit MODEL CLUSTER` with what it says as flags, such as "
                                "--method lora --micro-batch 2 --sequence-length 4096"});
}

}  // namespace shardplan::importing
