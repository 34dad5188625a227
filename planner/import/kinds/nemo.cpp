// NVIDIA NeMo's YAML: models of Megatron Core (2.x, nlp/language_modeling/conf), and the recipes of
// NeMo Automodel (nemo_automodel.h).
#include <fmt/format.h>

#include <array>

#include "import/kinds/kind.h"
#include "import/kinds/megatron.h"
#include "import/kinds/megatron_network.h"
#include "import/kinds/nemo_automodel.h"
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
