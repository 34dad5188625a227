// verl's supervised trainer of engines (0.8: verl/trainer/sft_trainer.py,
// config/sft_trainer_engine.yaml, workers/engine/fsdp/transformer_impl.py): the actor's modules,
// autocast and log-probabilities, over micro-batches of as many tokens as a budget has room for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/kinds/verl_config.h"
#include "import/kinds/verl_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing::verl {
namespace sft_engine {
namespace {

void taken_together(Key&) {}

void read_optimizer(Key& key) {
  const std::string name = key.text();
  if (name == "AdamW") return key.ignore("PyTorch's AdamW");
  if (name == "AdamW8bit" || name == "_AdamW8bit")
    return key.take("/optimizer", Json{{"name", "adamw_8bit"}});
  key.refuse(fmt::format("the optimizer '{}' is not estimated", name), "AdamW or AdamW8bit");
}

/// Loaded when training begins and stored when it ends (EngineTrainModeCtx): the peak stays.
void read_offload(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn(
      "what goes to the host between steps is there in a step: the copies' time is not counted");
}

void read_loss(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.take("/loss", "fused_linear");
}

constexpr std::array kRules{
    KeyRule{"model.path", "", read_model},
    KeyRule{"model.lora_rank", "", read_rank},
    KeyRule{"model.target_modules", "", read_targets},
    KeyRule{"model.use_liger", "", read_liger},
    KeyRule{"model.use_fused_kernels", "", read_loss},
    KeyRule{"model.enable_activation_offload", "", read_activation_offload},
    KeyRule{"model.tiled_mlp", "", read_tiles},
    KeyRule{"model.override_config.attn_implementation", "", read_attention},
    KeyRule{"model.mtp", "", read_mtp},
    KeyRule{"model.enable_gradient_checkpointing", "", taken_together},
    KeyRule{"engine.@", "", taken_together},
    KeyRule{"engine.strategy", "", taken_together},
    KeyRule{"engine.fsdp_size", "", taken_together},
    KeyRule{"engine.ulysses_sequence_parallel_size", "", taken_together},
    KeyRule{"engine.param_offload", "", read_offload},
    KeyRule{"engine.optimizer_offload", "", read_offload},
    KeyRule{"engine.offload_policy", "", taken_together},
    KeyRule{"engine.reshard_after_forward", "", taken_together},
    KeyRule{"engine.forward_prefetch", "", taken_together},
    KeyRule{"engine.use_orig_params", "", taken_together},
    KeyRule{"engine.model_dtype", "", taken_together},
    KeyRule{"engine.dtype", "", taken_together},
    KeyRule{"engine.mixed_precision", "", taken_together},
    KeyRule{"optim.optimizer", "", read_optimizer},
    KeyRule{"optim.clip_grad", "", taken_together},
    KeyRule{"data.train_batch_size", "", taken_together},
    KeyRule{"data.micro_batch_size_per_gpu", "", taken_together},
    KeyRule{"data.use_dynamic_bsz", "", taken_together},
    KeyRule{"data.max_token_len_per_gpu", "", taken_together},
    KeyRule{"data.max_length", "", taken_together},
    KeyRule{"trainer.nnodes", "", taken_together},
    KeyRule{"trainer.n_gpus_per_node", "", taken_together},
};

const std::array kIgnored{
    IgnoredKeys{"taken with the framework", {"engine"}},
    IgnoredKeys{"the loader runs on the host", {"data.*"}},
    IgnoredKeys{"samples are estimated as full", {"model.use_remove_padding"}},
    IgnoredKeys{"a step does not depend on it",
                {"optim", "optim.*", "trainer.*", "checkpoint.*", "profiler*", "defaults",
                 "environment", "config_path", "config_name", "hydra*", "engine.seed",
                 "engine.full_determinism", "engine.wrap_policy*", "engine.use_torch_compile",
                 "engine.entropy_*", "engine.forward_only", "engine._target_"}},
    IgnoredKeys{"the network does not depend on it", {"model.*"}},
};

class Composer {
 public:
  explicit Composer(const Config& config) : c_(config), recipe_(config.recipe()) {}

  void run() {
    if (c_.said("trainer.n_gpus_per_node") != nullptr) {
      recipe_.machines = c_.integer("trainer.nnodes", 1);
      recipe_.per_machine = c_.integer("trainer.n_gpus_per_node", 1);
    }
    take_framework();
    take_batch();
    recipe_.set("/gradient_clipping", c_.number("optim.clip_grad", 1.0),
                c_.origin("optim.clip_grad"));
    recipe_.set_default("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}});
    const bool recomputes = c_.flag("model.enable_gradient_checkpointing", true);
    recipe_.set("/checkpointing", recomputes ? "full" : "none",
                c_.origin("model.enable_gradient_checkpointing"));
    if (!recipe_.lora.is_null() && !recipe_.lora.contains("targets"))
      recipe_.lora["targets"] = Json{"all-linear"};
  }

 private:
  std::int64_t ranks() const { return c_.integer("engine.ulysses_sequence_parallel_size", 1); }

  /// Of the launcher or of the keys for Ray; 0 where neither says.
  std::int64_t gpus() const {
    if (recipe_.processes) return *recipe_.processes;
    return recipe_.per_machine ? *recipe_.per_machine * recipe_.machines.value_or(1) : 0;
  }

  /// The choice of the group, which fsdp is where nothing is said.
  void check_engine() const {
    for (const char* path : {"engine", "engine.@"}) {
      const Json* choice = c_.said(path);
      if (choice == nullptr || !choice->is_string() || *choice == "fsdp") continue;
      c_.refuse(path,
                fmt::format("the engine '{}' of the supervised trainer is not estimated",
                            choice->get<std::string>()),
                "fsdp");
    }
  }

  void take_framework() {
    check_engine();
    const std::string strategy = c_.text("engine.strategy", "fsdp");
    if (strategy != "fsdp" && strategy != "fsdp2")
      c_.refuse("engine.strategy", fmt::format("'{}' is not estimated", strategy), "fsdp or fsdp2");
    recipe_.set("/framework", fsdp_framework(c_, "engine.", strategy == "fsdp2", gpus()),
                c_.origin("engine.strategy"));
    recipe_.set("/trainer", "verl", c_.origin("model.path"));
    assume_flash_attn(recipe_);  // workers/config/model.py
    recipe_.set("/precision", fsdp_precision(c_, "engine."), c_.origin("engine.model_dtype"));
    if (ranks() > 1)
      recipe_.set("/parallel/sequence", ranks(),
                  c_.origin("engine.ulysses_sequence_parallel_size"));
  }

  /// rearrange_micro_batches (utils/seqlen_balancing.py) fills a micro-batch up to the budget, and
  /// stops at a sample that is longer.
  void take_batch() {
    recipe_.global_batch = c_.integer("data.train_batch_size", 256);
    std::int64_t length = c_.integer("data.max_length", 1024);
    std::int64_t micro = c_.integer("data.micro_batch_size_per_gpu", 4);
    if (c_.flag("data.use_dynamic_bsz", true)) {
      const std::int64_t budget = c_.integer("data.max_token_len_per_gpu", 8192) * ranks();
      length = std::min(length, budget);
      micro = (budget + length - 1) / std::max<std::int64_t>(length, 1);
      recipe_.micro_batch_at_most = true;
      recipe_.note(
          {.kind = Note::Kind::assumed,
           .field = fmt::format("workload.micro_batch: at most {}", micro),
           .reason = fmt::format("full samples of {} tokens in a budget of {}", length, budget)});
    }
    recipe_.set("/workload/sequence_length", length, c_.origin("data.max_length"));
    recipe_.set("/workload/micro_batch", micro, c_.origin("data.max_token_len_per_gpu"));
  }

  const Config& c_;
  Recipe& recipe_;
};

}  // namespace
}  // namespace sft_engine

void read_sft_of_engines(const Document& d, Recipe& recipe) {
  const KeyTable own{sft_engine::kRules, sft_engine::kIgnored};
  read_keys(d, {&own}, recipe);
  const Config config(d, recipe);
  sft_engine::Composer(config).run();
}

}  // namespace shardplan::importing::verl
