// olmo/config.py ModelConfig and FSDPConfig, olmo/model.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "import/kinds/olmo.h"
#include "import/vocabulary.h"

namespace shardplan::importing::olmo {
namespace {

/// The keys of `model` with ModelConfig's defaults.
class Network {
 public:
  Network(const Document& d, Recipe& recipe) : d_(d), recipe_(recipe) {}

  Json config() const {
    refuse_others();
    const std::int64_t hidden = count("d_model", 768), heads = count("n_heads", 12);
    const std::int64_t inner = count("mlp_hidden_size", count("mlp_ratio", 4) * hidden);
    std::int64_t keys = count("n_kv_heads", flag("multi_query_attention", false) ? 1 : heads);
    const bool rms = text("layer_norm_type", "default") == "rms";
    Json config{{"model_type", flag("norm_after", false) ? "olmo2"
                               : rms                     ? "llama"
                                                         : "stablelm"},
                {"hidden_size", hidden},
                {"intermediate_size", inner / 2},  // swiglu halves what it is given
                {"num_hidden_layers", count("n_layers", 12)},
                {"num_attention_heads", heads},
                {"num_key_value_heads", keys},
                {"vocab_size", count("embedding_size", count("vocab_size", 50257))},
                {"max_position_embeddings", count("max_sequence_length", 1024)},
                {"tie_word_embeddings", flag("weight_tying", true)},
                {"attention_dropout", number("attention_dropout", 0.1)}};
    if (config["model_type"] == "stablelm") {
      config["partial_rotary_factor"] = 1.0;
      config["use_qkv_bias"] = false;
    }
    return config;
  }

 private:
  const Json* find(const char* name) const {
    const Json* value = value_below(d_.value, fmt::format("model.{}", name));
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  Key key(const char* name, const Json& value) const {
    return {d_, fmt::format("model.{}", name), value, "", recipe_};
  }
  std::int64_t count(const char* name, std::int64_t otherwise) const {
    const Json* value = find(name);
    return value == nullptr ? otherwise : key(name, *value).integer(1);
  }
  double number(const char* name, double otherwise) const {
    const Json* value = find(name);
    return value == nullptr ? otherwise : key(name, *value).number();
  }
  bool flag(const char* name, bool otherwise) const {
    const Json* value = find(name);
    return value == nullptr ? otherwise : key(name, *value).flag();
  }
  std::string text(const char* name, const char* otherwise) const {
    const Json* value = find(name);
    return value == nullptr ? otherwise : lower(key(name, *value).text());
  }

  [[noreturn]] void refuse(const char* name, const char* why, const char* expected) const {
    static const Json kAbsent;
    const Json* value = find(name);
    key(name, value == nullptr ? kAbsent : *value).refuse(why, expected);
  }

  void refuse_others() const {
    if (text("activation_type", "swiglu") != "swiglu")
      refuse("activation_type", "another activation is not estimated", "swiglu");
    if (text("block_type", "sequential") != "sequential")
      refuse("block_type", "other blocks are not estimated", "sequential");
    if (!flag("rope", false)) refuse("rope", "learned positions are not estimated", "true");
    if (flag("alibi", false)) refuse("alibi", "is not estimated", "false");
    if (flag("include_bias", true)) refuse("include_bias", "biases are not estimated", "false");
    if (find("clip_qkv") != nullptr)
      refuse("clip_qkv", "keeps copies of queries, keys and values, which are not estimated",
             "null");
    for (const char* name : {"residual_dropout", "embedding_dropout"})
      if (number(name, 0.1) != 0)
        refuse(name, "keeps masks, which are not estimated; without the key it is 0.1", "0.0");
    const bool rms = text("layer_norm_type", "default") == "rms";
    const bool after = flag("norm_after", false), heads = flag("attention_layer_norm", false);
    if (after != heads || (after && !rms))
      refuse("norm_after",
             "norms of queries and keys without norms behind layers, or the other "
             "way round, are not estimated",
             "norm_after, attention_layer_norm and "
             "layer_norm_type: rms together, or neither of the first two");
    if (flag("embedding_layer_norm", false))
      refuse("embedding_layer_norm", "is not estimated", "false");
  }

  const Document& d_;
  Recipe& recipe_;
};

const std::array kIgnoredOfModel{
    IgnoredKeys{"taken as the network",
                {"model.d_model",
                 "model.n_heads",
                 "model.n_kv_heads",
                 "model.n_layers",
                 "model.mlp_ratio",
                 "model.mlp_hidden_size",
                 "model.activation_type",
                 "model.block_type",
                 "model.alibi*",
                 "model.rope",
                 "model.attention_dropout",
                 "model.multi_query_attention",
                 "model.attention_layer_norm",
                 "model.residual_dropout",
                 "model.embedding_dropout",
                 "model.embedding_layer_norm",
                 "model.layer_norm_type",
                 "model.include_bias",
                 "model.vocab_size",
                 "model.embedding_size",
                 "model.weight_tying",
                 "model.norm_after",
                 "model.clip_qkv"}},
    IgnoredKeys{"neither memory nor time of a step depends on it",
                {"model.rope_theta", "model.rope_full_precision", "model.layer_norm_with_affine",
                 "model.layer_norm_eps", "model.attention_layer_norm_with_affine",
                 "model.bias_for_layer_norm", "model.block_group_size", "model.scale_logits",
                 "model.eos_token_id", "model.pad_token_id", "model.init_*", "model.precision",
                 "model.scale_emb_init", "model.emb_init_std"}},
};

/// fsdp_precision of config.py: gradients are reduced in the computing type, or in fp32.
bool reduces_wide(const Key& key) {
  const Json* precision = value_below(key.value(), "precision");
  if (precision == nullptr) return false;  // pure
  if (*precision == "pure") return false;
  if (*precision == "mixed") return true;
  key.refuse("precision: gathers in fp32 are not estimated", "pure or mixed");
}

}  // namespace

const KeyTable kModelKeys{{}, kIgnoredOfModel};

void take_model(const Document& document, Recipe& recipe) {
  const Json config = Network(document, recipe).config();
  recipe.set("/model", config, {document.file, "model", document.positions.find("model").line});
  recipe.note(
      {.kind = Note::Kind::took,
       .file = document.file,
       .line = document.positions.find("model").line,
       .key = "model",
       .field = fmt::format("model: {}'s layers", config.at("model_type").get<std::string>())});
}

void read_fsdp(Key& key) {
  const Json* asked = key.other("distributed_strategy");
  if (asked != nullptr && asked->is_string() && lower(asked->get<std::string>()) != "fsdp")
    return key.ignore("distributed_strategy says another");
  if (!key.value().is_object()) key.refuse("is no mapping", "FSDP's options by name");
  constexpr std::array<std::string_view, 5> kKnown{"use_orig_params", "sharding_strategy",
                                                   "wrapping_strategy", "precision",
                                                   "hybrid_sharding_num_model_replicas"};
  for (const auto& [name, value] : key.value().items())
    if (std::ranges::find(kKnown, name) == kKnown.end())
      key.refuse(fmt::format("unknown key '{}'", name),
                 fmt::format("one of {}", fmt::join(kKnown, ", ")));
  const auto word = [&](const char* name, const char* otherwise) {
    const Json* value = value_below(key.value(), name);
    return value != nullptr && value->is_string() ? lower(value->get<std::string>())
                                                  : std::string(otherwise);
  };
  const std::string wraps = word("wrapping_strategy", "none");
  if (wraps != "by_block" && wraps != "by_block_and_size")
    key.refuse(wraps == "none"
                   ? "wrapping_strategy: without one the whole model is one flat "
                     "parameter, which is not estimated"
                   : fmt::format("wrapping_strategy: units '{}' are not estimated", wraps),
               "by_block or by_block_and_size");
  const std::string strategy = word("sharding_strategy", "full_shard");
  if (strategy != "full_shard" && strategy != "shard_grad_op" && strategy != "no_shard" &&
      strategy != "hybrid_shard")
    key.refuse(fmt::format("sharding_strategy: found '{}'", strategy),
               "FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD or NO_SHARD");
  if (const Json* copies = value_below(key.value(), "hybrid_sharding_num_model_replicas");
      copies != nullptr && !copies->is_null() && strategy == "hybrid_shard")
    key.refuse("hybrid_sharding_num_model_replicas is not read", "null: a copy for each node");
  const Json* original = value_below(key.value(), "use_orig_params");
  Json framework{{"name", "fsdp1"},
                 {"sharding_strategy", strategy},
                 {"use_orig_params", original == nullptr || *original != false},
                 {"backward_prefetch", "pre"}};
  if (reduces_wide(key)) framework["reduce_dtype"] = "fp32";
  key.recipe().set("/framework", framework, key.origin());
  key.took("framework: " + framework.dump());
}

}  // namespace shardplan::importing::olmo
