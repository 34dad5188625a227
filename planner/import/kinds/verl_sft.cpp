// verl's supervised trainer (0.8: verl/trainer/fsdp_sft_trainer.py, config/sft_trainer.yaml): the
// FSDP workers' modules and autocast, over batches of whole samples.
#include <fmt/format.h>

#include <array>

#include "import/kinds/verl_config.h"
#include "import/kinds/verl_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing::verl {
namespace sft {
namespace {

void taken_together(Key&) {}

void read_length(Key& key) {
  key.take("/workload/sequence_length", key.integer(1));
}

void read_optimizer_class(Key& key) {
  if (key.text() != "AdamW")
    key.refuse(fmt::format("the optimizer '{}' is not estimated", key.text()), "AdamW");
  key.ignore("PyTorch's AdamW");
}

constexpr std::array kRules{
    KeyRule{"model.partial_pretrain", "", read_model},
    KeyRule{"model.lora_rank", "", read_rank},
    KeyRule{"model.target_modules", "", read_targets},
    KeyRule{"model.use_liger", "", read_liger},
    KeyRule{"data.max_length", "", read_length},
    KeyRule{"optim.optimizer", "", read_optimizer_class},
    KeyRule{"data.train_batch_size", "", taken_together},
    KeyRule{"data.micro_batch_size_per_gpu", "", taken_together},
    KeyRule{"model.strategy", "", taken_together},
    KeyRule{"model.fsdp_config", "", taken_together},
    KeyRule{"model.enable_gradient_checkpointing", "", taken_together},
    KeyRule{"optim.clip_grad", "", taken_together},
    KeyRule{"ulysses_sequence_parallel_size", "", taken_together},
};

const std::array kIgnored{
    IgnoredKeys{"verl reads micro_batch_size_per_gpu alone", {"data.micro_batch_size"}},
    IgnoredKeys{"the loader runs on the host", {"data.*"}},
    IgnoredKeys{"a step does not depend on it",
                {"optim.*", "trainer.*", "defaults", "environment", "config_path", "config_name",
                 "model.trust_remote_code", "model.external_lib", "model.lora_alpha",
                 "model.lora_adapter_path", "model.use_shm", "hydra*"}},
    IgnoredKeys{"samples are estimated as full", {"use_remove_padding"}},
};

/// Weights in model_dtype, in shards that compute in bf16 and reduce in fp32.
void take_sharding(const Config& c, Recipe& recipe) {
  const std::string strategy = c.text("model.strategy", "fsdp2");
  if (strategy != "fsdp" && strategy != "fsdp2")
    c.refuse("model.strategy", fmt::format("'{}' is not estimated", strategy), "fsdp or fsdp2");
  Json framework{{"name", strategy == "fsdp" ? "fsdp1" : "fsdp2"}, {"reduce_dtype", "fp32"}};
  const bool offloads = c.flag("model.fsdp_config.cpu_offload", false);
  const bool parameters = c.flag("model.fsdp_config.offload_params", false);
  if (offloads && parameters) framework["cpu_offload"] = true;
  recipe.set("/framework", framework, c.origin("model.strategy"));
  const std::string kept = dtype_word(c.text("model.fsdp_config.model_dtype", "fp32"));
  if (kept != "fp32" && kept != "bf16")
    c.refuse("model.fsdp_config.model_dtype", fmt::format("parameters in {}", kept),
             "fp32 or bf16");
  recipe.set("/precision", kept == "fp32" ? "bf16-autocast" : "bf16-pure",
             c.origin("model.fsdp_config.model_dtype"));
}

}  // namespace
}  // namespace sft

void read_sft(const Document& d, Recipe& recipe) {
  const KeyTable own{sft::kRules, sft::kIgnored};
  read_keys(d, {&own}, recipe);
  const Config c(d, recipe);
  sft::take_sharding(c, recipe);
  recipe.set("/trainer", "verl", c.origin("model.partial_pretrain"));
  assume_flash_attn(recipe);  // fsdp_sft_trainer.py has no other
  recipe.set("/workload/micro_batch", c.integer("data.micro_batch_size_per_gpu", 4),
             c.origin("data.micro_batch_size_per_gpu"));
  recipe.global_batch = c.integer("data.train_batch_size", 256);
  recipe.assume("/workload/sequence_length", 1024, "verl's default, data.max_length");
  const bool recomputes = c.flag("model.enable_gradient_checkpointing", true);
  recipe.set("/checkpointing", recomputes ? "full" : "none",
             c.origin("model.enable_gradient_checkpointing"));
  recipe.set("/gradient_clipping", c.number("optim.clip_grad", 1.0), c.origin("optim.clip_grad"));
  recipe.set_default("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}});
  if (const std::int64_t ranks = c.integer("ulysses_sequence_parallel_size", 1); ranks > 1)
    recipe.set("/parallel/sequence", ranks, c.origin("ulysses_sequence_parallel_size"));
  if (!recipe.lora.is_null() && !recipe.lora.contains("targets"))
    recipe.lora["targets"] = Json{"all-linear"};
}

}  // namespace shardplan::importing::verl
