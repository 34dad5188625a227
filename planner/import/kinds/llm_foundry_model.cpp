// llmfoundry/models/mpt/configuration_mpt.py and models/hf/hf_causal_lm.py, hf_base.py.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/ascii.h"
#include "import/kinds/llm_foundry.h"
#include "import/vocabulary.h"

namespace shardplan::importing::llm_foundry {
namespace {

bool is_mpt(const Key& key) {
  const Json* name = key.other("model.name");
  return name != nullptr && *name == "mpt_causal_lm";
}

std::int64_t count(const Key& key, const char* name, std::int64_t otherwise) {
  const Json* value = key.other(fmt::format("model.{}", name));
  if (value == nullptr || value->is_null()) return otherwise;
  return Key(key.document(), fmt::format("model.{}", name), *value, "", key.recipe()).integer(1);
}

double number(const Key& key, const char* name, double otherwise) {
  const Json* value = key.other(fmt::format("model.{}", name));
  if (value == nullptr || value->is_null()) return otherwise;
  return Key(key.document(), fmt::format("model.{}", name), *value, "", key.recipe()).number();
}

/// MPT's layers are GPT-2's: norm, one product for queries, keys and values, GELU, tied ends.
Json mpt(std::int64_t hidden, std::int64_t heads, std::int64_t layers, std::int64_t inner,
         std::int64_t vocabulary, std::int64_t positions) {
  return Json{{"model_type", "gpt2"},     {"n_embd", hidden},
              {"n_head", heads},          {"n_layer", layers},
              {"n_inner", inner},         {"vocab_size", vocabulary},
              {"n_positions", positions}, {"activation_function", "gelu"},
              {"resid_pdrop", 0.0},       {"embd_pdrop", 0.0},
              {"attn_pdrop", 0.0}};
}

constexpr const char* kNormsAreMore =
    "MPT is estimated as GPT-2's layers, with norms in fp32 and biases, which is a little more";

void take_mpt(Key& key) {
  const std::int64_t hidden = count(key, "d_model", 2048), heads = count(key, "n_heads", 16);
  if (hidden % heads != 0 || count(key, "head_dim", hidden / heads) != hidden / heads)
    key.refuse("model.head_dim is not d_model over n_heads, which is not estimated", "no head_dim");
  const double ratio = number(key, "expansion_ratio", 4);
  Json model = mpt(hidden, heads, count(key, "n_layers", 24),
                   static_cast<std::int64_t>(ratio * static_cast<double>(hidden)),
                   count(key, "vocab_size", 50368), count(key, "max_seq_len", 2048));
  model["resid_pdrop"] = number(key, "resid_pdrop", 0);
  model["embd_pdrop"] = number(key, "emb_pdrop", 0);
  model["attn_pdrop"] = number(key, "attn_config.attn_pdrop", 0);
  key.take("/model", model);
  key.warn(kNormsAreMore);
}

/// Checkpoints of MPT, which the catalogue does not have (their config.json).
std::optional<Json> known_mpt(const std::string& name) {
  if (name.starts_with("mosaicml/mpt-7b")) return mpt(4096, 32, 32, 16384, 50432, 2048);
  if (name.starts_with("mosaicml/mpt-30b")) return mpt(7168, 64, 48, 28672, 50432, 8192);
  return std::nullopt;
}

void read_pretrained(Key& key) {
  if (is_mpt(key)) return key.ignore("model.name: mpt_causal_lm has its sizes here");
  if (const auto model = key.recipe().has_model ? std::nullopt : known_mpt(key.text())) {
    key.take("/model", *model);
    return key.warn(kNormsAreMore);
  }
  read_model(key);
}

void read_attention_kind(Key& key) {
  const std::string kind = key.text();
  if (kind != "flash" && kind != "torch" && kind != "triton")
    key.refuse(fmt::format("found '{}'", kind), "flash or torch");
  if (kind == "flash") return take_flash_attn(key);
  key.take("/attention", kind == "torch" ? "eager" : "sdpa");
}

void read_attention_type(Key& key) {
  if (key.text() == "multihead_attention") return key.ignore("a key for each query");
  key.refuse(fmt::format("'{}' is not estimated", key.text()), "multihead_attention");
}

void read_ffn_type(Key& key) {
  if (key.text() == "mptmlp") return key.ignore("two products and GELU between them");
  key.refuse(fmt::format("'{}' is not estimated", key.text()), "mptmlp");
}

void read_layer_kind(Key& key) {
  const Json* name = key.value().is_object() ? value_below(key.value(), "name") : &key.value();
  if (name != nullptr && *name == "torch") return key.ignore("PyTorch's own linear layers");
  key.refuse("linear layers of Transformer Engine are not estimated", "torch");
}

void read_tied(Key& key) {
  if (key.flag()) return key.ignore("one matrix at both ends");
  key.refuse("an output layer of its own is not estimated", "tie_word_embeddings: true");
}

void read_loss(Key& key) {
  if (key.text() == "torch_crossentropy") return key.ignore("the loss that is estimated");
  key.warn("a fused loss is estimated as PyTorch's, which is more");
}

void read_flash(Key& key) {
  if (key.flag()) return take_flash_attn(key);
  key.ignore("transformers' own choice");
}

void read_int8(Key& key) {
  if (!key.flag()) return key.ignore("not in 8 bits");
  if (key.other("model.peft_config") == nullptr)
    key.refuse("8 bits without adapters cannot be trained", "model.peft_config");
  quantize_base(key, "int8");
  key.took("workload.lora.quantization: int8");
}

constexpr std::array kRulesOfModel{
    KeyRule{"model.name", "", read_model_name},
    KeyRule{"model.pretrained_model_name_or_path", "", read_pretrained},
    KeyRule{"model.config_overrides", "", read_overrides},
    KeyRule{"model.peft_config", "", read_peft},
    KeyRule{"model.load_in_8bit", "", read_int8},
    KeyRule{"model.use_flash_attention_2", "", read_flash},
    KeyRule{"model.attn_implementation", "", read_attention},
    KeyRule{"model.attn_config.attn_impl", "", read_attention_kind},
    KeyRule{"model.attn_config.attn_type", "", read_attention_type},
    KeyRule{"model.attn_config.kv_n_heads", "", refuse_if_said},
    KeyRule{"model.attn_config.qk_ln", "", refuse_if_true},
    KeyRule{"model.attn_config.qk_gn", "", refuse_if_true},
    KeyRule{"model.attn_config.rope", "", refuse_if_true},
    KeyRule{"model.attn_config.clip_qkv", "", refuse_if_said},
    KeyRule{"model.ffn_config.ffn_type", "", read_ffn_type},
    KeyRule{"model.fc_type", "", read_layer_kind},
    KeyRule{"model.tie_word_embeddings", "", read_tied},
    KeyRule{"model.block_overrides", "", refuse_if_said},
    KeyRule{"model.final_logit_softcapping", "", refuse_if_said},
    KeyRule{"model.activation_checkpointing_target", "", refuse_if_said},
    KeyRule{"model.loss_fn", "", read_loss},
};

const std::array kIgnoredOfModel{
    IgnoredKeys{"taken with model.name",
                {"model.d_model", "model.n_heads", "model.n_layers", "model.head_dim",
                 "model.expansion_ratio", "model.vocab_size", "model.max_seq_len",
                 "model.resid_pdrop", "model.emb_pdrop", "model.attn_config.attn_pdrop"}},
    IgnoredKeys{"neither memory nor time of a step depends on it",
                {"model.init_device",
                 "model.init_config*",
                 "model.pretrained",
                 "model.use_auth_token",
                 "model.trust_remote_code",
                 "model.verbose",
                 "model.norm_eps",
                 "model.norm_type",
                 "model.no_bias",
                 "model.attention_bias",
                 "model.learned_pos_emb",
                 "model.logit_scale",
                 "model.use_cache",
                 "model.embedding_fraction",
                 "model.use_pad_tok_in_ffn",
                 "model.attn_config.alibi*",
                 "model.attn_config.softmax_scale",
                 "model.attn_config.attn_uses_sequence_id",
                 "model.attn_config.rope_*",
                 "model.attn_config.fused_qkv",
                 "model.attn_config.sliding_window_size",
                 "model.additional_train_metrics",
                 "model.use_train_metrics",
                 "model.tokenizer*"}},
};

}  // namespace

const KeyTable kModelKeys{kRulesOfModel, kIgnoredOfModel};

void read_model_name(Key& key) {
  const std::string name = key.text();
  if (name == "hf_causal_lm") return key.took("a model of transformers");
  if (name != "mpt_causal_lm")
    key.refuse(fmt::format("'{}' is not estimated", name), "mpt_causal_lm or hf_causal_lm");
  if (key.recipe().has_model) return key.ignore("--model says which");
  take_mpt(key);
}

/// Lengths and attention's implementation change no weights.
void read_overrides(Key& key) {
  if (!key.value().is_object()) key.refuse("is no mapping", "keys of the model's configuration");
  for (const auto& [name, value] : key.value().items()) {
    if (name == "max_seq_len" || name == "max_position_embeddings" || name == "n_positions" ||
        name == "rope_scaling" || name == "rope_theta" || name == "use_cache")
      continue;
    if (name == "attn_config") {
      const Json* kind = value_below(value, "attn_impl");
      if (kind != nullptr && *kind == "torch") key.recipe().set_default("/attention", "eager");
      continue;
    }
    key.refuse(fmt::format("'{}' changes the network in a way that is not read here", name),
               "--model with a config.json that has it, and no config_overrides");
  }
  key.ignore("neither memory nor time of a step depends on it");
}

/// peft's LoraConfig.
void read_peft(Key& key) {
  const Json* type = value_below(key.value(), "peft_type");
  if (type == nullptr || !type->is_string() || lower(type->get<std::string>()) != "lora")
    key.refuse("adapters other than LoRA are not estimated", "peft_type: LORA");
  make_lora(key.recipe());
  key.recipe().lora["rank"] = 8;  // peft 0.19, LoraConfig
  const auto inner = [&](const char* name, ReadKey rule) {
    const Json* value = value_below(key.value(), name);
    if (value == nullptr || value->is_null()) return;
    Key one(key.document(), fmt::format("{}.{}", key.path(), name), *value, "", key.recipe());
    rule(one);
  };
  inner("r", read_lora_rank);
  inner("target_modules", read_lora_targets);
  inner("lora_dropout", read_lora_dropout);
  inner("use_rslora", read_rank_stabilized);
  inner("use_dora", read_dora);
  inner("modules_to_save", read_saved_modules);
  key.took("workload.method: lora");
}

}  // namespace shardplan::importing::llm_foundry
