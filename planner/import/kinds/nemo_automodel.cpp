#include "import/kinds/nemo_automodel.h"

#include <fmt/format.h>

#include <array>

#include "import/kinds/nemo_stages.h"
#include "import/vocabulary.h"

namespace shardplan::importing::nemo {
namespace {

void read_global(Key& key) {
  key.recipe().global_batch = key.integer(1);
  key.took("workload.gradient_accumulation follows");
}

/// _transformers/kernel_patches.py, _apply_preload_overrides.
void read_attention_of_ranks(Key& key) {
  if (integer_at(key.document(), "distributed.cp_size").value_or(1) <= 1)
    return read_attention(key);
  key.take("/attention", "sdpa");
}

void read_strategy(Key& key) {
  std::string name = key.text();
  name = name.substr(name.rfind('.') + 1);
  if (name == "ddp" || name == "DDPManager") return key.take("/framework", Json{{"name", "ddp"}});
  if (name != "fsdp2" && name != "FSDP2Manager")
    key.refuse(fmt::format("'{}' is not estimated", name), "fsdp2 or ddp");
  key.ignore("framework: fsdp2");
}

/// The dispatcher of PyTorch's collectives gathers the tokens of all ranks of the group on each
/// (moe/experts.py, GroupedExperts.forward); DeepEP's kinds send each where it goes.
void read_dispatcher(Key& key) {
  const Json* ranks = key.other("distributed.ep_size");
  if (ranks == nullptr || !ranks->is_number_integer() || *ranks <= 1)
    return key.ignore("no expert parallelism");
  if (key.text() == "torch") return key.took("framework.expert_dispatch: allgather");
  key.ignore("rows are estimated as sent one for each expert, which is more");
}

void read_quantization(Key& key) {
  if (!key.flag()) return key.ignore("not in 4 bits");
  const Json* twice = key.other("quantization.bnb_4bit_use_double_quant");
  const Json* kind = key.other("quantization.bnb_4bit_quant_type");
  if (kind == nullptr || *kind != "nf4")
    key.refuse("4 bits of another type than nf4 are not estimated", "bnb_4bit_quant_type: nf4");
  const std::string form = twice != nullptr && *twice == true ? "nf4_double" : "nf4";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

/// Who divides one copy follows from the GPUs, which a file does not say.
void read_replicas(Key& key) {
  if (key.value().is_number_integer() && key.integer(1) > 1)
    key.refuse("copies of the states are not read", "1, or framework.hybrid_shard_size in a job");
  key.ignore("one copy of the states");
}

void read_degree(Key& key) {
  if (!key.value().is_number()) return key.ignore("not divided");
  if (key.integer(1) == 1) return key.ignore("1: not divided");
  key.take(key.integer(1));
}

/// components/distributed/activation_checkpointing.py chooses operations as torchtitan does.
void read_recomputing(Key& key) {
  if (key.value() == "selective")
    return key.take("/checkpointing", Json{{"policy", "selective_op"}, {"every", 2}});
  key.take("/checkpointing", key.flag() ? "full" : "none");
}

void read_target_optimizer(Key& key) {
  const std::string name = key.text();
  const std::string last = name.substr(name.rfind('.') + 1);
  if (last == "FusedAdam" || last == "AdamW" || last == "Adam") {
    const bool torch = name.starts_with("torch.");
    return key.take("/optimizer", Json{{"name", last == "Adam" ? "adam" : "adamw"},
                                       {"implementation", torch ? "foreach" : "fused"}});
  }
  if (last == "FlashAdamW") {  // moments in 8 bits, and at most 16 more of each weight
    key.estimate_larger("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}});
    return key.recipe().set_default("/precision", Json{{"params", "bf16"},
                                                       {"compute", "bf16"},
                                                       {"gradients", "bf16"},
                                                       {"master", nullptr},
                                                       {"optimizer_states", "fp32"}});
  }
  if (name == "dion.Muon" || name == "torch.optim.Muon") {
    if (name == "dion.Muon") key.warn("is estimated as torch.optim.Muon beside AdamW");
    return key.take("/optimizer", Json{{"name", "muon"}});
  }
  key.refuse(fmt::format("the optimizer '{}' is not read", name),
             "torch.optim.Adam, AdamW or Muon");
}

void read_packed(Key& key) {
  const std::int64_t size = key.integer(0);
  if (size == 0) return key.ignore("not packed");
  key.take("/workload/packing", true);
  key.recipe().set("/workload/sequence_length", size, key.origin());
}

void read_loss(Key& key) {
  const std::string name = key.text();
  if (name.find("Linear") != std::string::npos) return key.take("/loss", "fused_linear");
  key.ignore("over whole logits");
}

/// {"enabled": true, "recipe_name": "tensorwise"} of torchao.
void read_float8(Key& key) {
  if (!key.flag()) return key.ignore("off");
  const Json* recipe = key.other("fp8.recipe_name");
  const std::string name =
      recipe != nullptr && recipe->is_string() ? recipe->get<std::string>() : "tensorwise";
  if (name != "tensorwise" && name != "rowwise")
    key.refuse(fmt::format("the recipe '{}' is not estimated", name), "tensorwise or rowwise");
  key.take("/precision/linear", "fp8-" + name);
  const auto asks = [&](const char* what) {
    const Json* value = key.other(what);
    return value != nullptr && *value == true;
  };
  if (asks("fp8.enable_fsdp_float8_all_gather"))
    key.recipe().float8_gather =
        asks("fp8.precompute_float8_dynamic_scale_for_fsdp") ? "precomputed" : "dynamic";
}

/// recipes/llm/kd.py: an ordinary loss beside a divergence from a frozen teacher over all logits.
void read_teacher(Key& key) {
  const Json* name = key.other("teacher_model.pretrained_model_name_or_path");
  if (name == nullptr || !name->is_string())
    key.refuse("which model teaches is not said", "pretrained_model_name_or_path");
  key.recipe().take_algorithm("asft", key.origin());
  key.recipe().rlhf["models"]["reference"]["model"] = *name;
  key.recipe().rlhf["reference"] = "copy";
  key.warn("is estimated as ASFT, whose divergence from a mixture of both keeps more than KDLoss");
}

/// components/utils/model_utils.py, apply_parameter_freezing: the tower unless told otherwise, with
/// projectors whose name says vision. All projectors are taken to train, which is a little more.
void read_frozen(Key& key) {
  const auto says = [&](std::string_view name, bool otherwise) {
    const Json* value = value_below(key.value(), name);
    return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
  };
  key.recipe().frozen_tower = says("freeze_vision_tower", true);
  key.recipe().frozen_projector = false;
  if (says("freeze_language_model", false))
    return key.warn("the language model is frozen: the estimate trains it, which is more");
  key.took("workload.frozen, if the model reads images");
}

/// _transformers/auto_model.py: Liger patches networks of transformers, not Automodel's own.
void read_liger_kernels(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("Liger's kernels are left out of the estimate, which is more");
}

/// components/models/common/utils.py, BackendConfig.
void read_backend(Key& key) {
  const Json& value = key.value();
  if (value == false || value == "torch" || value == "torch_fp32" || value == "torch_mm" ||
      value == "sdpa")
    return key.ignore("PyTorch's own");
  key.warn("kernels of its own: time and working memory differ a little from PyTorch's");
}

constexpr std::array kRules{
    KeyRule{"model.pretrained_model_name_or_path", "", read_model},
    KeyRule{"model.config.pretrained_model_name_or_path", "", read_model},
    KeyRule{"model.torch_dtype", "", read_weights_dtype},
    KeyRule{"model.attn_implementation", "", read_attention_of_ranks},
    KeyRule{"step_scheduler.global_batch_size", "", read_global},
    KeyRule{"step_scheduler.local_batch_size", "", read_local_batch},
    KeyRule{"step_scheduler.grad_acc_steps", "/workload/gradient_accumulation", as_integer},
    KeyRule{"distributed.strategy", "", read_strategy},
    KeyRule{"distributed._target_", "", read_strategy},
    KeyRule{"distributed.tp_size", "/parallel/tensor", read_degree},
    KeyRule{"distributed.cp_size", "/parallel/context", read_degree},
    KeyRule{"distributed.pp_size", "/parallel/pipeline", read_degree},
    KeyRule{"distributed.ep_size", "/parallel/expert", read_degree},
    KeyRule{"distributed.dp_replicate_size", "", read_replicas},
    KeyRule{"distributed.sequence_parallel", "", read_token_division},
    KeyRule{"distributed.pipeline.pp_schedule", "", read_schedule},
    KeyRule{"distributed.pipeline.pp_schedule_csv", "", refuse_if_said},
    KeyRule{"distributed.pipeline.module_fqns_per_model_part", "", refuse_if_said},
    KeyRule{"model.backend.dispatcher", "", read_dispatcher},
    KeyRule{"model.backend.attn", "", read_backend},
    KeyRule{"model.backend.linear", "", read_backend},
    KeyRule{"model.backend.rms_norm", "", read_backend},
    KeyRule{"model.backend.rope", "", read_backend},
    KeyRule{"model.backend.rope_fusion", "", read_backend},
    KeyRule{"model.backend.experts", "", read_backend},
    KeyRule{"model.use_liger_kernel", "", read_liger_kernels},
    KeyRule{"distributed.activation_checkpointing", "", read_recomputing},
    KeyRule{"optimizer._target_", "", read_target_optimizer},
    KeyRule{"packed_sequence.packed_sequence_size", "", read_packed},
    KeyRule{"dataset.seq_len", "/workload/sequence_length", as_integer},
    KeyRule{"dataset.seq_length", "/workload/sequence_length", as_integer},
    KeyRule{"dataset.max_length", "/workload/sequence_length", as_integer},
    KeyRule{"loss_fn._target_", "", read_loss},
    KeyRule{"peft.dim", "", read_lora_rank},
    KeyRule{"peft.target_modules", "", read_lora_targets},
    KeyRule{"peft.dropout", "", read_lora_dropout},
    KeyRule{"quantization.load_in_4bit", "", read_quantization},
    KeyRule{"quantization.load_in_8bit", "", refuse_if_true},
    KeyRule{"clip_grad_norm.max_norm", "/gradient_clipping", as_number},
    KeyRule{"compile.enabled", "", read_compile},
    KeyRule{"fp8.enabled", "", read_float8},
    KeyRule{"freeze_config", "", read_frozen},
    KeyRule{"teacher_model", "", read_teacher},
    KeyRule{"separate_meshes", "", refuse_if_true},
    KeyRule{"offload_teacher_model", "", refuse_if_true},
    KeyRule{"model.drafter_path", "", refuse_if_said},  // a second network that trains
    KeyRule{"flow_matching", "", refuse_if_said},
};

const std::array kIgnored{
    IgnoredKeys{"a step does not depend on it",
                {"recipe",
                 "seed",
                 "step_scheduler.*",
                 "dist_env.*",
                 "rng.*",
                 "checkpoint.*",
                 "wandb.*",
                 "mlflow.*",
                 "ci.*",
                 "lr_scheduler.*",
                 "optimizer.*",
                 "model._target_",
                 "model.backend._target_",
                 "model.backend.enable_hf_state_dict_adapter",
                 "model.backend.fake_balanced_gate",
                 "model.trust_remote_code",
                 "model.use_cache",
                 "logger.*",
                 "benchmark.*",
                 "distributed.*",
                 "loss_fn.*",
                 "peft.*",
                 "compile.*",
                 "profiler.*",
                 "fp8.*",
                 "quantization.*",
                 "slurm.*",
                 "auto_resume",
                 "model.text_config.*",
                 "model.config._target_",
                 "model.config.trust_remote_code",
                 "clip_grad_norm.*"}},
    IgnoredKeys{"taken with teacher_model", {"kd_loss_fn*", "kd_ratio"}},
    IgnoredKeys{"the loader runs on the host",
                {"dataset.*", "dataloader.*", "validation_*", "tokenizer.*", "processor.*",
                 "packed_sequence.*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

bool flag_at(const Document& d, std::string_view path, bool otherwise) {
  const Json* value = value_below(d.value, path);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

/// components/distributed/config.py: gradients are reduced in fp32, once a step unless
/// defer_fsdp_grad_sync is off. Under expert parallelism moe/parallelizer.py keeps parameters
/// gathered unless told otherwise, and the models' fsdp_mixin.py does between micro-batches; so
/// does parallelizer.py under a pipeline.
Json sharding_of(const Document& d) {
  Json framework{{"name", "fsdp2"}, {"reduce_dtype", "fp32"}};
  const Json* dispatcher = value_below(d.value, "model.backend.dispatcher");
  if (dispatcher != nullptr && *dispatcher == "torch" &&
      integer_at(d, "distributed.ep_size").value_or(1) > 1)
    framework["expert_dispatch"] = "allgather";
  framework["sync_each_batch"] = !flag_at(d, "distributed.defer_fsdp_grad_sync", true);
  const bool experts = integer_at(d, "distributed.ep_size").value_or(1) > 1;
  framework["reshard_after_forward"] =
      experts ? flag_at(d, "distributed.moe.reshard_after_forward", false) &&
                    !flag_at(d, "model.backend.enable_fsdp_optimizations", false)
              : flag_at(d, "distributed.reshard_after_forward", stages_of(d) <= 1);
  // shared/multimodal_fsdp.py: in the root's unit unless told otherwise. `replicate` keeps it whole
  // too, and without the shards that the root has beside it.
  const Json* sharding = value_below(d.value, "distributed.multimodal.frozen_sharding");
  const Json* recipe = value_below(d.value, "recipe");
  const bool reads_images = has_any(d, {"freeze_config"}) ||
                            (recipe != nullptr && recipe->is_string() &&
                             recipe->get<std::string>().find("VLM") != std::string::npos);
  if (reads_images && (sharding == nullptr || *sharding != "per_layer"))
    framework["frozen_tower"] = "root";
  return framework;
}

/// Data sets for language models, and Tulu 3, which a processor formats as texts
/// (components/datasets/vlm/datasets.py, make_tulu3_dataset).
bool holds_texts(const Document& d) {
  const Json* data = value_below(d.value, "dataset._target_");
  if (data == nullptr || !data->is_string()) return false;
  const std::string name = *data;
  return name.find("datasets.llm.") != name.npos || name.find(".make_tulu3_") != name.npos;
}

}  // namespace

void read_automodel(const Document& d, Recipe& recipe) {
  read_keys(d, {&kOwn}, recipe);
  if (recipe.find("/framework") == nullptr) {
    const Json framework = sharding_of(d);
    recipe.note({.kind = Note::Kind::took,
                 .file = d.file,
                 .key = "distributed",
                 .field = "framework: " + framework.dump()});
    recipe.set_default("/framework", framework);
  }
  take_chunks(d, recipe);
  recipe.texts = holds_texts(d);
  if (stages_of(d) > 1) recipe.set_default("/parallel/balance", "blocks");
  recipe.set_default("/trainer", "loop");
  recipe.set_default("/checkpointing", "none");
  recipe.set_default("/gradient_clipping", 1.0);
  // Weights are sharded in the type in which they were loaded.
  if (recipe.lora.is_null())
    recipe.assume(recipe.find("/precision/linear") == nullptr ? "/precision" : "/precision/preset",
                  recipe.weights.dtype == "fp32" ? "bf16-autocast" : "bf16-pure",
                  "shards in the type of the weights");
}

}  // namespace shardplan::importing::nemo
