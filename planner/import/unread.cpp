#include "import/unread.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/diagnostic.h"
#include "import/kinds/kind.h"

namespace shardplan::importing {
namespace {

bool has_below(const Json& value, const char* block, const char* key) {
  return value.contains(block) && value.at(block).is_object() && value.at(block).contains(key);
}

bool is_litgpt(const Document& d) {
  return has_below(d.value, "train", "global_batch_size") &&
         has_below(d.value, "train", "micro_batch_size");
}

bool is_nanotron(const Document& d) {
  return has_below(d.value, "parallelism", "dp") &&
         has_below(d.value, "tokens", "micro_batch_size");
}

/// A fork of verl with keys of its own.
bool is_easyr1(const Document& d) {
  return has_below(d.value, "worker", "actor") && has_below(d.value, "data", "rollout_batch_size");
}

/// Its YAML has DeepSpeed's keys beside its own, and its network is Megatron-LM's.
bool is_gpt_neox(const Document& d) {
  return !d.is_command() && has_any(d, {"pipe_parallel_size", "pipe-parallel-size"});
}

bool is_arctic_training(const Document& d) {
  return has_below(d.value, "model", "name_or_path") && has_below(d.value, "data", "sources");
}

/// Trainer and generation are blocks of one file, or of one each.
bool is_prime_rl(const Document& d) {
  const bool whole = d.value.contains("orchestrator") &&
                     (d.value.contains("trainer") || d.value.contains("deployment"));
  return whole || (has_below(d.value, "model", "name") && has_below(d.value, "optim", "lr") &&
                   (d.value.contains("ckpt") || has_below(d.value, "data", "seq_len")));
}

bool is_areal(const Document& d) {
  return d.value.contains("experiment_name") && has_below(d.value, "actor", "experiment_name");
}

bool is_align_anything(const Document& d) {
  return d.value.contains("train_cfgs") && d.value.contains("model_cfgs");
}

bool is_primus(const Document& d) {
  return has_below(d.value, "modules", "pre_trainer") ||
         has_below(d.value, "modules", "post_trainer");
}

bool is_skyrl(const Document& d) {
  return has_any(d, {"trainer.policy.model.path"});
}

bool is_leap_finetune(const Document& d) {
  return d.value.contains("training_type") && d.value.contains("training_config");
}

/// Its supervised training is NeMo's own; what else it trains has further models or another loss.
bool is_nemo_aligner(const Document& d) {
  return has_any(d, {"trainer.ppo", "trainer.dpo", "trainer.kto", "trainer.spin", "trainer.rs",
                     "trainer.rm", "trainer.reinforce", "trainer.knowledge_distillation",
                     "model.ppo", "model.dpo", "model.kto", "model.spin", "model.rs",
                     "model.reinforce", "model.knowledge_distillation"});
}

/// The configuration that OLMo-core's programs write beside their checkpoints.
bool is_olmo_core(const Document& d) {
  return has_any(d, {"train_module"}) && has_any(d, {"model._CLASS_", "model.d_model"});
}

/// `oumi infer` and `evaluate` read the same model's keys as `oumi train`.
bool is_oumi_without_training(const Document& d) {
  return has_all(d, {"model.model_name"}) && has_any(d, {"generation", "engine", "tasks"}) &&
         !has_any(d, {"training", "data.train"});
}

bool is_h2o_llm_studio(const Document& d) {
  return has_all(d, {"llm_backbone"});
}

bool is_trlx(const Document& d) {
  return has_all(d, {"method.name", "train.batch_size"});
}

bool is_ludwig(const Document& d) {
  return has_all(d, {"input_features", "output_features"});
}

bool is_mistral_finetune(const Document& d) {
  return has_all(d, {"model_id_or_path", "data.instruct_data"});
}

bool is_lightning_cli(const Document& d) {
  return has_any(d, {"model.class_path", "fit.model.class_path"});
}

/// `llamafactory-cli chat` and `export` read the same keys as `train`.
bool is_llamafactory_without_training(const Json& value) {
  return value.contains("model_name_or_path") && value.contains("template") &&
         (value.contains("infer_backend") || value.contains("export_dir")) &&
         !value.contains("stage");
}

struct Unread {
  std::string_view name;
  bool (*recognise)(const Document&);
};

constexpr std::array kUnread{
    Unread{"LitGPT", is_litgpt},
    Unread{"nanotron", is_nanotron},
    Unread{"EasyR1", is_easyr1},
    Unread{"GPT-NeoX", is_gpt_neox},
    Unread{"ArcticTraining", is_arctic_training},
    Unread{"prime-rl", is_prime_rl},
    Unread{"AReaL", is_areal},
    Unread{"align-anything", is_align_anything},
    Unread{"Primus", is_primus},
    Unread{"SkyRL", is_skyrl},
    Unread{"leap-finetune", is_leap_finetune},
    Unread{"NeMo-Aligner", is_nemo_aligner},
    Unread{"OLMo-core", is_olmo_core},
    Unread{"H2O LLM Studio", is_h2o_llm_studio},
    Unread{"trlX", is_trlx},
    Unread{"Ludwig", is_ludwig},
    Unread{"mistral-finetune", is_mistral_finetune},
    Unread{"Lightning's command line", is_lightning_cli},
};

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
  if (is_oumi_without_training(document))
    throw InputError({.file = document.file,
                      .key = "training",
                      .message = "missing: the file generates or evaluates, and trains nothing",
                      .expected = "the file of `oumi train`"});
  const auto trainer =
      std::ranges::find_if(kUnread, [&](const Unread& known) { return known.recognise(document); });
  if (trainer == kUnread.end()) return;
  throw InputError({.file = document.file,
                    .message = fmt::format("is a file of {}, which is not read", trainer->name),
                    .expected = "`shardplan fit MODEL CLUSTER` with what it says as flags, such as "
                                "--method lora --micro-batch 2 --sequence-length 4096"});
}

}  // namespace shardplan::importing
