// OLMo's YAML (59a53e3f, September 2025: olmo/config.py, model.py, train.py, scripts/train.py).
// OLMo-core, which came after it, is configured by Python programs.
#include <fmt/format.h>

#include <array>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "import/kinds/hydra_references.h"
#include "import/kinds/kind.h"
#include "import/kinds/olmo.h"
#include "import/vocabulary.h"

namespace shardplan::importing::olmo {
namespace {

bool is_olmo(const Document& d) {
  return has_all(d, {"model.max_sequence_length"}) &&
         has_any(d, {"device_train_microbatch_size", "global_train_batch_size"});
}

void read_global_batch(Key& key) {
  key.recipe().global_batch = key.integer(1);
  key.took("workload.gradient_accumulation follows");
}

/// olmo/model.py: flash_attn_func where it is on, else scaled_dot_product_attention.
void read_flash(Key& key) {
  if (key.flag()) return take_flash_attn(key);
  key.take("/attention", "sdpa");
}

/// torch's AdamW with its own choice, and Lion.
void read_optimizer_name(Key& key) {
  const std::string name = lower(key.text());
  if (name == "adamw")
    return key.take("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}});
  if (name == "lionw") return key.take("/optimizer", Json{{"name", "lion"}});
  key.refuse(fmt::format("found '{}'", key.text()), "adamw or lionw");
}

void read_precision(Key& key) {
  const std::string name = lower(key.text());
  if (name != "amp_bf16" && name != "amp_fp16" && name != "fp32")
    key.refuse(fmt::format("found '{}'", key.text()), "amp_bf16, amp_fp16 or fp32");
  key.take("/precision", name == "fp32" ? name : name.substr(4) + "-autocast");
}

/// should_checkpoint_block: the first of each two, three, four or eight, or all but the first.
void read_blocks(Key& key) {
  if (key.value() == false) return key.take("/checkpointing", "none");
  const std::string how = key.text();
  if (how == "whole_layer") return key.take("/checkpointing", "full");
  for (const auto& [name, every] : {std::pair{"one_in_two", 2}, std::pair{"one_in_three", 3},
                                    std::pair{"one_in_four", 4}, std::pair{"one_in_eight", 8}})
    if (how == name)
      return key.take("/checkpointing", Json{{"policy", "blocks"}, {"every", every}});
  if (how == "two_in_three" || how == "three_in_four") {
    key.recipe().set("/checkpointing", Json{{"policy", "blocks"}, {"every", 2}}, key.origin());
    return key.warn("is estimated as every second block, which keeps more");
  }
  if (how == "fine_grained") {
    key.recipe().set("/checkpointing", "none", key.origin());
    return key.warn("is estimated as no checkpointing, which keeps more");
  }
  key.refuse(fmt::format("found '{}'", how),
             "whole_layer, one_in_two, one_in_three, one_in_four, one_in_eight, two_in_three, "
             "three_in_four or fine_grained");
}

void read_auxiliary_loss(Key& key) {
  if (!key.flag()) return key.ignore("off");
  if (key.other_is_true("fused_loss")) return key.ignore("within the fused loss");
  key.refuse("a z-loss beside PyTorch's own keeps more of the logits than is estimated",
             "fused_loss: true");
}

void read_fused_loss(Key& key) {
  if (key.flag())
    key.warn("a fused loss is estimated as PyTorch's, which is more");
  else
    key.ignore("the loss that is estimated");
}

void read_strategy(Key& key) {
  const std::string name = lower(key.text());
  if (name == "ddp" || name == "single") return key.take("/framework", Json{{"name", name}});
  if (name != "fsdp") key.refuse(fmt::format("found '{}'", key.text()), "fsdp, ddp or single");
  key.took("with fsdp");
}

void read_compiler(Key& key) {
  const Json* mode = value_below(key.value(), "mode");
  key.take("/compile", mode != nullptr && mode->is_string() ? Json{{"mode", *mode}} : Json(true));
}

constexpr std::array kRules{
    KeyRule{"model.flash_attention", "", read_flash},
    KeyRule{"model.max_sequence_length", "/workload/sequence_length", as_integer},
    KeyRule{"device_train_microbatch_size", "/workload/micro_batch", as_integer},
    KeyRule{"global_train_batch_size", "", read_global_batch},
    KeyRule{"optimizer.name", "", read_optimizer_name},
    KeyRule{"precision", "", read_precision},
    KeyRule{"max_grad_norm", "", read_clipping},
    KeyRule{"max_grad_norm_ratio", "", read_clipping},
    KeyRule{"activation_checkpointing", "", read_blocks},
    KeyRule{"softmax_auxiliary_loss", "", read_auxiliary_loss},
    KeyRule{"fused_loss", "", read_fused_loss},
    KeyRule{"distributed_strategy", "", read_strategy},
    KeyRule{"fsdp", "", read_fsdp},
    KeyRule{"compile", "", read_compiler},
};

const std::array kIgnored{
    IgnoredKeys{"a step does not depend on it",
                {"run_name",
                 "seed",
                 "epoch",
                 "dry_run",
                 "optimizer.*",
                 "scheduler*",
                 "max_duration",
                 "stop_*",
                 "time_limit",
                 "extra_steps_after_cancel",
                 "early_stopping_factor",
                 "console_log_interval",
                 "speed_monitor*",
                 "wandb*",
                 "gen1_gc_interval",
                 "canceled_check_interval",
                 "python_profiling",
                 "torch_profiling",
                 "auxiliary_loss_multiplier",
                 "tokenizer*",
                 "ddp*",
                 "single*",
                 "restore_*",
                 "reset_*",
                 "try_load_latest_save",
                 "fast_forward_batches",
                 "hf_datasets_cache_dir",
                 "module_outputs_save_steps",
                 "device_train_batch_size",
                 "device_train_grad_accum",
                 "environment"}},
    IgnoredKeys{"evaluation and saving are no part of a training step",
                {"eval_*", "evaluators*", "device_eval_*", "save_*", "load_*", "remote_save_folder",
                 "no_pre_train_checkpoint", "sharded_checkpointer", "force_save_unsharded",
                 "new_style_checkpoints"}},
    IgnoredKeys{"the loader runs on the host", {"data*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

void require(const Document& d, const Recipe& recipe, const char* pointer, const char* key,
             const char* why, const char* expected) {
  if (recipe.find(pointer) == nullptr)
    throw InputError({.file = d.file, .key = key, .message = why, .expected = expected});
}

void read(const Document& d, Recipe& recipe) {
  Document whole = d;
  resolve_references(whole.value);
  read_keys(whole, {&kOwn, &kModelKeys}, recipe);
  if (!recipe.has_model) take_model(whole, recipe);
  recipe.set_default("/trainer", "loop");
  require(d, recipe, "/precision", "precision", "missing, at which OLMo stops",
          "amp_bf16, amp_fp16 or fp32");
  require(d, recipe, "/framework", "fsdp.wrapping_strategy",
          "missing: the whole model would be one flat parameter, which is not estimated",
          "by_block or by_block_and_size");
  recipe.assume("/workload/micro_batch", 16, "OLMo's default");
  if (!recipe.global_batch) recipe.global_batch = 512;  // TrainConfig
  recipe.assume("/optimizer", Json{{"name", "lion"}}, "OLMo's default, lionw");
  recipe.set_default("/gradient_clipping", 0.0);
  recipe.assume("/checkpointing", "none", "OLMo's default, activation_checkpointing");
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"olmo", "a configuration of OLMo", is_olmo, read};

}  // namespace shardplan::importing::olmo
