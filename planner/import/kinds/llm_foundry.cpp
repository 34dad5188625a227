// LLM Foundry's YAML (8c8dd48f7, July 2025: llmfoundry/utils/config_utils.py TrainConfig,
// command_utils/train.py), and the block of it in a job of MosaicML's platform.
#include "import/kinds/llm_foundry.h"

#include <fmt/format.h>

#include <array>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "import/kinds/hydra_references.h"
#include "import/kinds/kind.h"
#include "import/vocabulary.h"

namespace shardplan::importing::llm_foundry {
namespace {

bool is_llm_foundry(const Document& d) {
  for (const std::string_view block : {"", "parameters."})
    for (const char* key : {"device_train_microbatch_size", "global_train_batch_size"})
      if (has_any(d, {fmt::format("{}{}", block, key)}) &&
          !has_any(d, {"model.max_sequence_length"}))  // OLMo's
        return true;
  return false;
}

void read_micro_batch(Key& key) {
  if (key.value() == "auto") {
    if (key.recipe().asked_micro_batch > 0) return key.ignore("--micro-batch says it");
    key.refuse("'auto' is the largest that fits when it runs", "a number; or --micro-batch");
  }
  key.take("/workload/micro_batch", key.integer(1));
  key.recipe().micro_batch_at_most = true;  // calculate_batch_size_info
}

void read_global_batch(Key& key) {
  key.recipe().global_batch = key.integer(1);
  key.took("workload.gradient_accumulation follows");
}

/// DecoupledAdamW and DecoupledLionW step parameter by parameter (composer/optim,
/// llmfoundry/optim).
void read_optimizer_name(Key& key) {
  const std::string name = lower(key.text());
  if (name == "decoupled_adamw" || name == "adamw")
    return key.take(
        "/optimizer",
        Json{{"name", "adamw"}, {"implementation", name == "adamw" ? "foreach" : "for-loop"}});
  if (name == "adam")
    return key.take("/optimizer", Json{{"name", "adam"}, {"implementation", "foreach"}});
  if (name == "decoupled_lionw") return key.take("/optimizer", Json{{"name", "lion"}});
  key.refuse(fmt::format("the optimizer '{}' is not estimated", key.text()),
             "decoupled_adamw, decoupled_lionw, adamw or adam");
}

void read_precision(Key& key) {
  const std::string name = lower(key.text());
  if (name == "fp32") return key.take("/precision", "fp32");
  if (name != "amp_bf16" && name != "amp_fp16")
    key.refuse(fmt::format("'{}' is not estimated", key.text()), "amp_bf16, amp_fp16 or fp32");
  key.take("/precision", name.substr(4) + "-autocast");
}

void read_algorithms(Key& key) {
  if (!key.value().is_object()) key.refuse("is no mapping", "algorithms by name");
  for (const auto& [name, options] : key.value().items()) {
    const Key one(key.document(), key.path() + "." + name, options, "", key.recipe());
    if (name != "gradient_clipping")
      one.refuse("the algorithm is not estimated", "gradient_clipping alone");
    const Json* type = value_below(options, "clipping_type");
    if (type != nullptr && *type != "norm")
      one.refuse("clipping_type: only the norm is estimated", "norm");
    const Json* most = value_below(options, "clipping_threshold");
    key.recipe().set("/gradient_clipping", most != nullptr && most->is_number() ? *most : Json(1.0),
                     key.origin());
  }
  key.took("gradient_clipping");
}

void read_packing(Key& key) {
  key.take("/workload/packing", true);
}

void read_compiler(Key& key) {
  const Json* mode = value_below(key.value(), "mode");
  key.take("/compile", mode != nullptr && mode->is_string() ? Json{{"mode", *mode}} : Json(true));
}

void read_gpus(Key& key) {
  key.recipe().processes = key.integer(1);
  key.took("GPUs in all");
}

constexpr std::array kRules{
    KeyRule{"max_seq_len", "/workload/sequence_length", as_integer},
    KeyRule{"device_train_microbatch_size", "", read_micro_batch},
    KeyRule{"global_train_batch_size", "", read_global_batch},
    KeyRule{"precision", "", read_precision},
    KeyRule{"optimizer.name", "", read_optimizer_name},
    KeyRule{"algorithms", "", read_algorithms},
    KeyRule{"fsdp_config", "", read_fsdp},
    KeyRule{"tp_config", "", refuse_if_said},
    KeyRule{"deepspeed_config", "", refuse_if_said},
    KeyRule{"compile_config", "", read_compiler},
    KeyRule{"train_loader.dataset.packing_ratio", "", read_packing},
    KeyRule{"compute.gpus", "", read_gpus},
    KeyRule{"gpu_num", "", read_gpus},
};

const std::array kIgnored{
    IgnoredKeys{"a step does not depend on it",
                {"variables",
                 "variables.*",
                 "run_name",
                 "seed",
                 "global_seed",
                 "optimizer.*",
                 "scheduler*",
                 "max_duration",
                 "dist_timeout",
                 "progress_bar",
                 "log_to_console",
                 "python_log_level",
                 "console_log_interval",
                 "log_config",
                 "loggers*",
                 "callbacks*",
                 "metadata*",
                 "flatten_metadata",
                 "code_paths",
                 "autoresume",
                 "profiler*",
                 "tokenizer*",
                 "tokenizer_name",
                 "train_subset_num_batches",
                 "accumulate_train_batch_on_tokens",
                 "spin_dataloaders",
                 "name",
                 "image",
                 "command",
                 "integrations*",
                 "cluster",
                 "gpu_type",
                 "compute*",
                 "scheduling*",
                 "data_local",
                 "data_remote",
                 "environment",
                 "cuda_load_lazy"}},
    IgnoredKeys{"evaluation and saving are no part of a training step",
                {"eval_*", "device_eval_*", "icl_*", "save_*", "load_*", "only_*"}},
    IgnoredKeys{"the loader runs on the host", {"train_loader*", "dataset*"}},
    IgnoredKeys{"how the allocator rounds is estimated as usual",
                {"max_split_size_mb", "expandable_segments"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

void place_all(const Json& value, const std::string& path, const Document& from, Document& to) {
  const std::string whole = "parameters." + path;
  to.elsewhere[path] = {from.file, from.positions.find(whole).line, whole};
  if (value.is_object())
    for (const auto& [name, below] : value.items()) place_all(below, path + "." + name, from, to);
}

/// A job of the platform has the trainer's file as a block.
Document unwrapped(const Document& d) {
  const auto block = d.value.find("parameters");
  if (block == d.value.end() || !block->is_object()) return d;
  Document inner = d;
  inner.value = *block;
  for (const auto& [name, value] : block->items()) place_all(value, name, d, inner);
  for (const char* gpus : {"compute.gpus", "gpu_num"})
    if (const Json* count = value_below(d.value, gpus)) inner.value[gpus] = *count;
  return inner;
}

void read(const Document& d, Recipe& recipe) {
  Document whole = unwrapped(d);
  resolve_references(whole.value);
  read_keys(whole, {&kOwn, &kModelKeys}, recipe);
  recipe.set_default("/trainer", "loop");
  recipe.assume("/precision", "bf16-autocast", "LLM Foundry's default, amp_bf16");
  recipe.set_default("/gradient_clipping", 0.0);
  recipe.assume("/checkpointing", "none", "composer's default, activation_checkpointing");
  if (recipe.find("/workload/micro_batch") == nullptr && recipe.asked_micro_batch == 0)
    throw InputError({.file = d.file,
                      .key = "device_train_microbatch_size",
                      .message = "missing: the largest that fits when it runs",
                      .expected = "a number; or --micro-batch"});
  if (recipe.find("/workload/sequence_length") == nullptr)
    throw InputError({.file = d.file,
                      .key = "max_seq_len",
                      .message = "missing, at which LLM Foundry stops",
                      .expected = "tokens of a sample"});
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"llm_foundry", "a configuration of LLM Foundry", is_llm_foundry, read};

}  // namespace shardplan::importing::llm_foundry
