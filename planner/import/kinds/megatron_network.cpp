#include "import/kinds/megatron_network.h"

#include <fmt/format.h>

#include <array>

#include "base/diagnostic.h"
#include "load/catalog.h"

namespace shardplan::importing {
namespace {

class Network {
 public:
  explicit Network(const Document& d) : d_(d) {}

  Json config() const {
    require("num_layers");
    require("hidden_size");
    require("num_attention_heads");
    const bool rms = text("normalization", "LayerNorm") == "RMSNorm";
    const bool gated = flag("swiglu");
    const bool rope = text("position_embedding_type", "learned_absolute") == "rope" ||
                      flag("use_rotary_position_embeddings");
    for (const char* key : {"hybrid_layer_pattern", "hybrid_override_pattern", "spec"})
      if (d_.value.contains(key)) refuse(key, "layers of other kinds are not read");
    if (flag("multi_latent_attention")) return latent();
    if (rms && gated && rope) return has_experts() ? experts() : dense();
    if (!rms && !gated && !rope && !has_experts()) return gpt2();
    if (!rms && !gated && rope && !has_experts()) return neox();
    refuse("normalization",
           "no network that is known has this normalization, this activation and "
           "these positions together");
  }

 private:
  bool flag(const char* key) const {
    const auto found = d_.value.find(key);
    return found != d_.value.end() && (*found == true || *found == "true" || *found == "True");
  }
  std::string text(const char* key, const char* otherwise) const {
    const auto found = d_.value.find(key);
    return found != d_.value.end() && found->is_string() ? found->get<std::string>() : otherwise;
  }
  std::int64_t number(const char* key, std::int64_t otherwise) const {
    const auto found = d_.value.find(key);
    return found != d_.value.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                                 : otherwise;
  }
  bool has_experts() const { return number("num_experts", 0) > 0; }

  [[noreturn]] void refuse(const char* key, std::string message) const {
    throw InputError({.file = d_.file,
                      .key = std::string("--") + key,
                      .message = std::move(message),
                      .expected = "--model with its name or config.json",
                      .position = d_.positions.find(key)});
  }
  void require(const char* key) const {
    if (number(key, 0) > 0) return;
    refuse(key, d_.value.contains(key) ? "is no positive number" : "is not in the arguments");
  }

  /// ffn_hidden_size is 4 times the width; gated ones two thirds of that, in multiples of 64
  /// (arguments.py, validate_args).
  std::int64_t feed_forward() const {
    const std::int64_t width = number("hidden_size", 0);
    const std::int64_t usual = flag("swiglu") ? width * 4 * 2 / 3 / 64 * 64 : width * 4;
    return number("ffn_hidden_size", usual);
  }

  Json shared(const char* type) const {
    const std::int64_t heads = number("num_attention_heads", 0);
    Json config{
        {"model_type", type},
        {"hidden_size", number("hidden_size", 0)},
        {"intermediate_size", feed_forward()},
        {"num_hidden_layers", number("num_layers", 0)},
        {"num_attention_heads", heads},
        {"num_key_value_heads",
         flag("group_query_attention") ? number("num_query_groups", 1) : heads},
        {"vocab_size", vocabulary()},
        {"max_position_embeddings", number("max_position_embeddings", number("seq_length", 4096))},
        {"tie_word_embeddings", !flag("untie_embeddings_and_output_weights")}};
    if (const std::int64_t channels = number("kv_channels", 0); channels > 0)
      config["head_dim"] = channels;
    return config;
  }

  std::int64_t vocabulary() const {
    const std::int64_t words = megatron_vocabulary(d_);
    if (words == 0)
      refuse("vocab_size", "the vocabulary comes from the tokenizer, and is not in the arguments");
    return words;
  }

  Json dense() const {
    if (flag("qk_layernorm")) return shared("qwen3");
    if (flag("add_qkv_bias")) return shared("qwen2");
    Json config = shared("llama");
    const bool biases = !flag("disable_bias_linear") && !flag("no_bias");
    if (biases) config["attention_bias"] = config["mlp_bias"] = true;
    return config;
  }

  Json experts() const {
    const std::int64_t shared_size = number("moe_shared_expert_intermediate_size", 0);
    const std::int64_t width = number("moe_ffn_hidden_size", feed_forward());
    Json config = shared(shared_size > 0        ? "qwen2_moe"
                         : flag("qk_layernorm") ? "qwen3_moe"
                                                : "mixtral");
    const bool mixtral = config["model_type"] == "mixtral";
    config[mixtral ? "num_local_experts" : "num_experts"] = number("num_experts", 0);
    config["num_experts_per_tok"] = number("moe_router_topk", 2);
    if (mixtral) {
      config["intermediate_size"] = width;
      return config;
    }
    config["moe_intermediate_size"] = width;
    if (shared_size > 0) config["shared_expert_intermediate_size"] = shared_size;
    return config;
  }

  Json latent() const {
    if (!has_experts()) refuse("multi_latent_attention", "without experts is not known");
    Json config = shared("deepseek_v3");
    const std::int64_t width = number("moe_ffn_hidden_size", feed_forward());
    config["moe_intermediate_size"] = width;
    config["n_routed_experts"] = number("num_experts", 0);
    config["num_experts_per_tok"] = number("moe_router_topk", 2);
    config["n_shared_experts"] = number("moe_shared_expert_intermediate_size", 0) / width;
    config["first_k_dense_replace"] = dense_layers();
    config["q_lora_rank"] =
        d_.value.contains("q_lora_rank") ? Json(number("q_lora_rank", 1536)) : Json();
    config["kv_lora_rank"] = number("kv_lora_rank", 32);
    config["qk_nope_head_dim"] = number("qk_head_dim", 128);
    config["qk_rope_head_dim"] = number("qk_pos_emb_head_dim", 64);
    config["v_head_dim"] = number("v_head_dim", 128);
    config["n_group"] = config["topk_group"] = 1;
    config.erase("head_dim");
    return config;
  }

  /// "([0]*1+[1]*26)" of --moe-layer-freq: as many without experts at the start.
  std::int64_t dense_layers() const {
    const std::string pattern = text("moe_layer_freq", "");
    const std::size_t at = pattern.find("[0]*");
    if (at == std::string::npos || at + 4 >= pattern.size()) return 0;
    std::int64_t count = 0;
    for (std::size_t i = at + 4; i < pattern.size() && i < at + 8; ++i) {
      if (pattern[i] < '0' || pattern[i] > '9') break;
      count = count * 10 + (pattern[i] - '0');
    }
    return count;
  }

  /// Dropout is 0.1 in both unless told otherwise (transformer_config.py).
  Json gpt2() const {
    const auto rate = [&](const char* key) {
      const auto found = d_.value.find(key);
      return found != d_.value.end() && found->is_number() ? found->get<double>() : 0.1;
    };
    return Json{{"model_type", "gpt2"},
                {"n_embd", number("hidden_size", 0)},
                {"n_inner", feed_forward()},
                {"n_layer", number("num_layers", 0)},
                {"n_head", number("num_attention_heads", 0)},
                {"vocab_size", vocabulary()},
                {"n_positions", number("max_position_embeddings", number("seq_length", 1024))},
                {"attn_pdrop", rate("attention_dropout")},
                {"resid_pdrop", rate("hidden_dropout")},
                {"embd_pdrop", rate("hidden_dropout")},
                {"tie_word_embeddings", !flag("untie_embeddings_and_output_weights")}};
  }

  Json neox() const {
    if (flag("group_query_attention")) refuse("group_query_attention", "beside LayerNorm and GELU");
    Json config = shared("gpt_neox");
    config["use_parallel_residual"] = false;
    return config;
  }

  const Document& d_;
};

struct TokenizerWords {
  std::string_view type;
  std::int64_t words;
};

/// Tokenizers of one vocabulary each.
constexpr std::array kTokenizers{
    TokenizerWords{"GPT2BPETokenizer", 50257},
    TokenizerWords{"Llama2Tokenizer", 32000},
    TokenizerWords{"Llama3Tokenizer", 128256},
};

}  // namespace

Json megatron_network(const Document& arguments) {
  return Network(arguments).config();
}

std::int64_t megatron_vocabulary(const Document& arguments) {
  for (const char* key : {"vocab_size", "padded_vocab_size"}) {
    const auto found = arguments.value.find(key);
    if (found != arguments.value.end() && found->is_number_integer())
      return found->get<std::int64_t>();
  }
  const auto model = arguments.value.find("tokenizer_model");
  if (model != arguments.value.end() && model->is_string())
    if (const auto known = find_model(model->get<std::string>()))
      return known->config.value("vocab_size", std::int64_t{0});
  const auto type = arguments.value.find("tokenizer_type");
  if (type == arguments.value.end() && arguments.value.contains("merge_file"))
    return kTokenizers.front().words;  // a vocabulary with merges is GPT-2's
  if (type == arguments.value.end()) return 0;
  for (const TokenizerWords& t : kTokenizers)
    if (*type == t.type) return t.words;
  return 0;
}

}  // namespace shardplan::importing
