// NVIDIA NeMo's YAML: models of Megatron Core (2.x, nlp/language_modeling/conf), and NeMo
// Automodel's recipes for transformers' models under FSDP2.
#include <fmt/format.h>

#include <array>

#include "import/kinds/kind.h"
#include "import/kinds/megatron.h"
#include "import/kinds/megatron_network.h"
#include "import/kinds/nemo_stages.h"
#include "import/vocabulary.h"

namespace shardplan::importing::nemo {
namespace {

bool is_automodel(const Document& d) {
  return has_any(d, {"step_scheduler"}) &&
         has_any(d, {"model.pretrained_model_name_or_path", "model.config", "distributed"});
}

bool is_of_core(const Document& d) {
  return has_any(d,
                 {"model.tensor_model_parallel_size", "model.micro_batch_size", "model.mcore_gpt"});
}

/// NeMo's networks from before Megatron Core.
bool is_older(const Document& d) {
  return has_any(d, {"trainer"}) && has_any(d, {"model.optim"}) &&
         has_any(d, {"model.language_model", "model.encoder.library", "exp_manager"});
}

bool is_nemo(const Document& d) {
  if (is_automodel(d) || is_older(d)) return true;
  return has_any(d, {"trainer", "run"}) && is_of_core(d);
}

struct Renamed {
  std::string_view key;       ///< of NeMo
  std::string_view argument;  ///< of Megatron-LM
};

/// Modules of Megatron Core by the words of NeMo, as transformers names their parts.
constexpr std::array<std::pair<std::string_view, std::array<std::string_view, 4>>, 6> kCoreModules{
    {{"attention_qkv", {"q_proj", "k_proj", "v_proj"}},
     {"attention_dense", {"o_proj"}},
     {"mlp_fc1", {"gate_proj", "up_proj"}},
     {"mlp_fc2", {"down_proj"}},
     {"attention", {"q_proj", "k_proj", "v_proj", "o_proj"}},
     {"mlp", {"gate_proj", "up_proj", "down_proj"}}}};

constexpr std::array kSame{
    Renamed{"model.micro_batch_size", "micro_batch_size"},
    Renamed{"model.global_batch_size", "global_batch_size"},
    Renamed{"model.encoder_seq_length", "seq_length"},
    Renamed{"model.max_position_embeddings", "max_position_embeddings"},
    Renamed{"model.num_layers", "num_layers"},
    Renamed{"model.hidden_size", "hidden_size"},
    Renamed{"model.num_attention_heads", "num_attention_heads"},
    Renamed{"model.kv_channels", "kv_channels"},
    Renamed{"model.position_embedding_type", "position_embedding_type"},
    Renamed{"model.hidden_dropout", "hidden_dropout"},
    Renamed{"model.attention_dropout", "attention_dropout"},
    Renamed{"model.num_moe_experts", "num_experts"},
    Renamed{"model.moe_router_topk", "moe_router_topk"},
    Renamed{"model.tensor_model_parallel_size", "tensor_model_parallel_size"},
    Renamed{"model.pipeline_model_parallel_size", "pipeline_model_parallel_size"},
    Renamed{"model.virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"},
    Renamed{"model.context_parallel_size", "context_parallel_size"},
    Renamed{"model.expert_model_parallel_size", "expert_model_parallel_size"},
    Renamed{"model.sequence_parallel", "sequence_parallel"},
    Renamed{"model.activations_checkpoint_granularity", "recompute_granularity"},
    Renamed{"model.activations_checkpoint_method", "recompute_method"},
    Renamed{"model.activations_checkpoint_num_layers", "recompute_num_layers"},
    Renamed{"model.ub_tp_comm_overlap", "tp_comm_overlap"},
    Renamed{"trainer.gradient_clip_val", "clip_grad"},
    Renamed{"model.tokenizer.type", "tokenizer_type"},
};

/// What Network and the arguments know under another name or value.
class Translation {
 public:
  explicit Translation(const Document& d) : d_(d) {
    made_.file = d.file;
    made_.value = Json::object();
  }

  Document translate() {
    for (const Renamed& r : kSame)
      if (const Json* value = at(r.key); value != nullptr && !is_expression(*value))
        put(r.key, r.argument, *value);
    feed_forward();
    network();
    optimizer();
    precision();
    return std::move(made_);
  }

 private:
  /// null stands for the default, as an absent key does.
  const Json* at(std::string_view key) const {
    const Json* value = value_below(d_.value, key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  static bool is_expression(const Json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find("${") != std::string::npos;
  }
  void put(std::string_view key, std::string_view argument, Json value) {
    made_.positions.add(std::string(argument), d_.positions.find(key));
    made_.value[std::string(argument)] = std::move(value);
  }
  std::string text(std::string_view key) const {
    const Json* value = at(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  bool is(std::string_view key, bool wanted) const {
    const Json* value = at(key);
    return value != nullptr && *value == wanted;
  }

  /// "${multiply:4, ${.hidden_size}}" is Megatron-LM's own default.
  void feed_forward() {
    const Json* value = at("model.ffn_hidden_size");
    if (value == nullptr) return;
    if (is_expression(*value) && value->get<std::string>().find("multiply:4") == std::string::npos)
      throw InputError({.file = d_.file,
                        .key = "model.ffn_hidden_size",
                        .message = "an expression that is not read",
                        .expected = "a number",
                        .position = d_.positions.find("model.ffn_hidden_size")});
    if (value->is_number_integer()) put("model.ffn_hidden_size", "ffn_hidden_size", *value);
  }

  void network() {
    const std::string norm = text("model.normalization");
    if (norm == "rmsnorm" || norm == "RMSNorm")
      put("model.normalization", "normalization", "RMSNorm");
    const std::string activation = text("model.activation");
    if (activation.find("swiglu") != std::string::npos) put("model.activation", "swiglu", true);
    if (is("model.bias", false)) put("model.bias", "disable_bias_linear", true);
    if (is("model.share_embeddings_and_output_weights", false))
      put("model.share_embeddings_and_output_weights", "untie_embeddings_and_output_weights", true);
    if (const Json* groups = at("model.num_query_groups");
        groups != nullptr && groups->is_number()) {
      put("model.num_query_groups", "num_query_groups", *groups);
      put("model.num_query_groups", "group_query_attention", true);
    }
    if (is("model.transformer_engine", false))
      put("model.transformer_engine", "transformer_impl", "local");
  }

  void optimizer() {
    const std::string name = text("model.optim.name");
    if (name == "distributed_fused_adam" || name == "mcore_distributed_optim")
      put("model.optim.name", "use_distributed_optimizer", true);
    if (is("model.optim.overlap_grad_sync", true))
      put("model.optim.overlap_grad_sync", "overlap_grad_reduce", true);
    if (is("model.optim.overlap_param_sync", true))
      put("model.optim.overlap_param_sync", "overlap_param_gather", true);
    if (text("model.optim.grad_sync_dtype") == "bf16")
      put("model.optim.grad_sync_dtype", "grad_reduce_in_bf16", true);
  }

  void precision() {
    const Json* value = at("trainer.precision");
    if (value == nullptr) return;
    const std::string name = value->is_string() ? value->get<std::string>() : value->dump();
    if (name.starts_with("bf16")) put("trainer.precision", "bf16", true);
    if (name.starts_with("16")) put("trainer.precision", "fp16", true);
    if (is("model.fp8", true)) put("model.fp8", "fp8_format", "hybrid");
  }

  const Document& d_;
  Document made_;
};

/// peft_config.py, LoraPEFTConfig: rank 32 of joint projections of the attention.
void read_core_adapters(const Document& d, Recipe& recipe) {
  const Json* scheme = value_below(d.value, "model.peft.peft_scheme");
  if (scheme == nullptr || scheme->is_null() || *scheme == "none") return;
  const Key key(d, "model.peft.peft_scheme", *scheme, "", recipe);
  if (*scheme != "lora")
    key.refuse("adapters of this kind are not estimated", "lora, none or null");
  constexpr std::string_view kBlock = "model.peft.lora_tuning.";
  const auto at = [&](std::string_view name) {
    return value_below(d.value, std::string(kBlock) + std::string(name));
  };
  make_lora(recipe);
  recipe.lora["rank"] = integer_at(d, std::string(kBlock) + "adapter_dim").value_or(32);
  Json targets = Json::array();
  const Json usual{"attention_qkv"};
  const Json* named = at("target_modules");
  for (const Json& name : named != nullptr && named->is_array() ? *named : usual)
    for (const auto& [word, parts] : kCoreModules)
      if (name == word || name == "all")
        for (const std::string_view part : parts)
          if (!part.empty()) targets.push_back(part);
  if (targets.empty()) key.refuse("target_modules has no module that is known", "attention_qkv");
  recipe.lora["targets"] = targets;
  recipe.note({.kind = Note::Kind::took,
               .file = d.file,
               .key = key.path(),
               .field = "workload.lora: " + recipe.lora.dump()});
}

void read_core(const Document& d, Recipe& recipe) {
  read_core_adapters(d, recipe);
  const Document arguments = Translation(d).translate();
  recipe.machines = integer_at(d, "trainer.num_nodes");
  recipe.per_machine = integer_at(d, "trainer.devices");
  if (!recipe.has_model && recipe.find("/model") == nullptr)
    recipe.set("/model", megatron_network(arguments), {.file = d.file, .key = "model.num_layers"});
  read_megatron_arguments(arguments, recipe);
  recipe.note({.kind = Note::Kind::ignored,
               .file = d.file,
               .key = "trainer, exp_manager, run, data and the other keys of model",
               .reason = "what has an argument of Megatron-LM's name is taken"});
}

// ---- NeMo Automodel.

void read_global(Key& key) {
  key.recipe().global_batch = key.integer(1);
  key.took("workload.gradient_accumulation follows");
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

void read_frozen(Key& key) {
  key.warn("parts of the model are frozen: the estimate is for all of it, which is more");
}

constexpr std::array kRules{
    KeyRule{"model.pretrained_model_name_or_path", "", read_model},
    KeyRule{"model.config.pretrained_model_name_or_path", "", read_model},
    KeyRule{"model.torch_dtype", "", read_weights_dtype},
    KeyRule{"model.attn_implementation", "", read_attention},
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

void read(const Document& d, Recipe& recipe) {
  if (is_automodel(d)) return read_automodel(d, recipe);
  if (is_of_core(d)) return read_core(d, recipe);
  const Json* model = value_below(d.value, "model");
  Key(d, "model", *model, "", recipe)
      .refuse("NeMo's networks from before Megatron Core are not read",
              "a model of Megatron Core, or a recipe of NeMo Automodel");
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"nemo", "a NeMo configuration", is_nemo, read};

}  // namespace shardplan::importing::nemo
