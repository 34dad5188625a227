// torchtune's recipes (bd2a0fc7c, April 2026: recipes/configs, recipes/full_finetune_*.py,
// lora_finetune_*.py and *_dpo_*.py). A recipe says what is made by "_component_"; which program
// runs it is said on the command line, and by the names of the files that torchtune brings.
#include <fmt/format.h>

#include <array>

#include "import/kinds/kind.h"
#include "import/kinds/torchtune_model.h"
#include "import/vocabulary.h"

namespace shardplan::importing::torchtune {
namespace {

bool is_torchtune(const Document& d) {
  return std::any_of(d.value.begin(), d.value.end(), [](const Json& part) {
    const Json* made = part.is_object() ? value_below(part, "_component_") : nullptr;
    return made != nullptr && made->is_string() &&
           made->get_ref<const std::string&>().starts_with("torchtune.");
  });
}

void read_dtype(Key& key) {
  const std::string type = dtype_word(key.text());
  if (type == "fp32") return key.take("/precision", "fp32");
  if (type != "bf16") key.refuse(fmt::format("found '{}'", key.text()), "bf16 or fp32");
  key.take("/precision", "bf16-pure");
}

void read_optimizer_component(Key& key) {
  const std::string name = key.text();
  const bool fused = key.other_is_true("optimizer.fused");
  for (const auto& [own, word] :
       {std::pair{"torch.optim.Adam", "adam"}, std::pair{"torch.optim.AdamW", "adamw"}})
    if (name == own)
      return key.take("/optimizer",
                      Json{{"name", word}, {"implementation", fused ? "fused" : "foreach"}});
  for (const auto& [own, word] :
       {std::pair{"bitsandbytes.optim.PagedAdamW", "paged_adamw_32bit"},
        std::pair{"bitsandbytes.optim.PagedAdamW8bit", "paged_adamw_8bit"},
        std::pair{"bitsandbytes.optim.AdamW8bit", "adamw_bnb_8bit"}})
    if (name == own) return key.take("/optimizer", *transformers_optimizer(word));
  key.refuse(fmt::format("the optimizer '{}' is not estimated", name),
             "torch.optim.AdamW, torch.optim.Adam or bitsandbytes.optim.PagedAdamW8bit");
}

/// Chunks of it keep as many logits for the backward pass as all at once (modules/loss).
void read_loss_component(Key& key) {
  const std::string name = key.text().substr(key.text().rfind('.') + 1);
  if (name == "DPOLoss" || name == "RSOLoss") {
    key.recipe().take_algorithm("dpo", key.origin());
    return key.took("workload.algorithm: dpo");
  }
  if (name == "LinearCrossEntropyLoss" || name == "CEWithChunkedOutputLoss")
    return key.warn("a loss in chunks is estimated as one over all logits, which is more");
  if (name == "CrossEntropyLoss") return key.ignore("the loss that is estimated");
  key.refuse(fmt::format("the loss '{}' is not estimated", name),
             "LinearCrossEntropyLoss, CEWithChunkedOutputLoss or DPOLoss");
}

void read_length(Key& key) {
  if (key.value().is_null()) return key.ignore("as long as the longest sample of a batch");
  key.take("/workload/sequence_length", key.integer(1));
}

void read_packed(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.take("/workload/packing", true);
}

/// training/_compile.py: each layer by itself.
void read_compile_switch(Key& key) {
  const Json* model = key.value().is_object() ? value_below(key.value(), "model") : nullptr;
  const bool on = key.value().is_object() ? model != nullptr && *model == true : key.flag();
  if (!on) return key.ignore("the model is not compiled");
  key.take("/compile", Json{{"scope", "block"}});
}

void read_checkpoints(Key& key) {
  key.take("/checkpointing", key.flag() ? "full" : "none");
}

/// Which program runs it is no key: the names of recipes for one GPU say so.
bool runs_alone(const Document& d) {
  return d.file.find("single_device") != std::string::npos;
}

void read_offloads(Key& key) {
  if (!key.flag()) return key.ignore("off");
  if (!runs_alone(key.document()))
    return key.warn("activations on the host under FSDP2 are estimated on the GPU, which is more");
  const Json* streams = key.other("activation_offloading_use_streams");
  key.take("/activation_offloading",
           streams != nullptr && *streams == false ? "one_stream" : "streams");
}

void read_step_in_backward(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("the optimizer is estimated behind the backward pass, which keeps all gradients: more");
}

void read_clip(Key& key) {
  if (key.value().is_null()) return key.take("/gradient_clipping", 0.0);
  key.take("/gradient_clipping", key.number());
}

void read_tensor_degree(Key& key) {
  if (key.integer(1) > 1)
    key.take("/parallel/tensor", key.integer(1));
  else
    key.ignore("1: none");
}

void read_context_degree(Key& key) {
  if (key.integer(1) > 1)
    key.take("/parallel/context", key.integer(1));
  else
    key.ignore("1: none");
}

void read_fp8(Key& key) {
  if (!key.flag()) return key.ignore("off");
  const Json* recipe = key.other("fp8_recipe_name");
  take_fp8(key,
           recipe != nullptr && recipe->is_string() ? recipe->get<std::string>() : "tensorwise",
           false);
}

void refuse_quantizer(Key& key) {
  if (!key.value().is_object()) return key.ignore("none");
  key.refuse("training with fake quantization (QAT) is not estimated: it keeps more",
             "no quantizer");
}

void refuse_second(Key& key) {
  key.refuse(
      "a second network beside the one that trains is not estimated for torchtune's "
      "distillation, PPO and GRPO",
      "a recipe of fine-tuning or DPO");
}

void taken_together(Key&) {}

constexpr std::array kRules{
    KeyRule{"model._component_", "", read_component},
    KeyRule{"model.lora_rank", "", read_lora_rank},
    KeyRule{"model.lora_attn_modules", "", read_attention_targets},
    KeyRule{"model.apply_lora_to_mlp", "", read_mlp_targets},
    KeyRule{"model.apply_lora_to_output", "", read_output_target},
    KeyRule{"model.lora_dropout", "", read_lora_dropout},
    KeyRule{"model.use_dora", "", read_dora},
    KeyRule{"model.encoder_trainable", "", read_trainable},
    KeyRule{"model.decoder_trainable", "", read_trainable},
    KeyRule{"model.fusion_trainable", "", read_trainable},
    KeyRule{"teacher_model", "", refuse_second},
    KeyRule{"policy_model", "", refuse_second},
    KeyRule{"reward_and_value_model", "", refuse_second},
    KeyRule{"grpo_samples", "", refuse_second},
    KeyRule{"quantizer", "", refuse_quantizer},
    KeyRule{"tokenizer.max_seq_len", "", read_length},
    KeyRule{"dataset.packed", "", read_packed},
    KeyRule{"batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"gradient_accumulation_steps", "/workload/gradient_accumulation", as_integer},
    KeyRule{"optimizer._component_", "", read_optimizer_component},
    KeyRule{"optimizer_in_bwd", "", read_step_in_backward},
    KeyRule{"loss._component_", "", read_loss_component},
    KeyRule{"clip_grad_norm", "", read_clip},
    KeyRule{"compile", "", read_compile_switch},
    KeyRule{"dtype", "", read_dtype},
    KeyRule{"enable_activation_checkpointing", "", read_checkpoints},
    KeyRule{"enable_activation_offloading", "", read_offloads},
    KeyRule{"tensor_parallel_dim", "", read_tensor_degree},
    KeyRule{"context_parallel_dim", "", read_context_degree},
    KeyRule{"enable_fp8_training", "", read_fp8},
    KeyRule{"data_parallel_shard_dim", "", taken_together},
    KeyRule{"data_parallel_replicate_dim", "", taken_together},
    KeyRule{"fsdp_cpu_offload", "", taken_together},
    KeyRule{"fsdp_reshard_after_forward", "", taken_together},
    KeyRule{"ac_mode", "", refuse_if_said},
    KeyRule{"resize_token_embeddings", "", warn_if_true},
};

const std::array kIgnored{
    IgnoredKeys{"taken with the rest of its block",
                {"optimizer.fused", "fsdp.cpu_offload", "fp8_recipe_name", "ac_option",
                 "activation_offloading_use_streams", "context_parallel_rotate_method"}},
    IgnoredKeys{"how it is divided does not depend on it", {"tensor_parallel_plan*"}},
    IgnoredKeys{"embeddings and head in units of their own take a little less at a time",
                {"custom_sharded_layers"}},
    IgnoredKeys{"evaluation is no part of a training step",
                {"dataset_val*", "run_val_every_n_steps", "batch_size_val",
                 "max_validation_batches", "validation*"}},
    IgnoredKeys{"a step does not depend on it",
                {"output_dir",
                 "tokenizer.*",
                 "dataset",
                 "dataset.*",
                 "checkpointer.*",
                 "ref_checkpointer.*",
                 "optimizer.*",
                 "loss.*",
                 "lr_scheduler.*",
                 "metric_logger.*",
                 "profiler.*",
                 "profiler",
                 "resume_from_checkpoint",
                 "save_*",
                 "seed",
                 "shuffle",
                 "epochs",
                 "max_steps_per_epoch",
                 "log_*",
                 "device",
                 "collate_fn",
                 "enable_async_checkpointing",
                 "cudnn_deterministic_mode",
                 "base_model_path",
                 "name",
                 "low_cpu_ram",
                 "use_distributed_state_dict",
                 "model.lora_alpha",
                 "model.image_size",
                 "model.max_seq_len",
                 "model.quantize_base",
                 "prompt*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

bool is_true(const Document& d, std::string_view path) {
  const Json* value = value_below(d.value, path);
  return value != nullptr && *value == true;
}

/// training/_distributed.py, shard_model: layers in units, all in the type of the model, which
/// gradients are reduced in too.
Json sharding(const Document& d) {
  Json framework{{"name", "fsdp2"}};
  if (is_true(d, "fsdp_cpu_offload") || is_true(d, "fsdp.cpu_offload"))
    framework["cpu_offload"] = true;
  const Json* reshard = value_below(d.value, "fsdp_reshard_after_forward");
  if (reshard != nullptr && *reshard == false) framework["reshard_after_forward"] = false;
  const std::int64_t copies = integer_at(d, "data_parallel_replicate_dim").value_or(1);
  const std::int64_t shards = integer_at(d, "data_parallel_shard_dim").value_or(-1);
  if (copies > 1 && shards < 1)
    throw InputError({.file = d.file,
                      .key = "data_parallel_shard_dim",
                      .message = fmt::format("is left open beside {} copies", copies),
                      .expected = "the GPUs that divide one copy"});
  if (copies > 1) framework["hybrid_shard_size"] = shards;
  return framework;
}

void take_program(const Document& d, Recipe& recipe) {
  if (runs_alone(d)) {
    recipe.one_process = true;
    return;
  }
  recipe.assume("/framework", sharding(d),
                "torchtune's distributed recipes; single_device ones have it in their names");
}

void read(const Document& d, Recipe& recipe) {
  if (!has_any(d, {"optimizer"}) && !has_any(d, {"policy_model", "grpo_samples"}))
    throw InputError({.file = d.file,
                      .key = "optimizer",
                      .message =
                          "missing: the recipe generates, evaluates or quantizes, and trains "
                          "nothing",
                      .expected = "a recipe of fine-tuning or DPO"});
  read_keys(d, {&kOwn}, recipe);
  take_program(d, recipe);
  recipe.set_default("/trainer", "loop");
  recipe.set_default("/gradient_clipping", 0.0);
  recipe.set_default("/checkpointing", "none");
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"torchtune", "a torchtune recipe", is_torchtune, read};

}  // namespace shardplan::importing::torchtune
