#include "import/kinds/megatron_network.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "load/catalog.h"

namespace shardplan::importing {
namespace {

/// Arguments of layers that are not GPT's.
constexpr std::array<const char*, 9> kOtherNetworks{"hybrid_layer_pattern",
                                                    "hybrid_override_pattern",
                                                    "spec",
                                                    "linear_attention_freq",
                                                    "attention_output_gate",
                                                    "experimental_attention_variant",
                                                    "window_size",
                                                    "softmax_type",
                                                    "quick_geglu"};

class Network {
 public:
  explicit Network(const Document& d) : d_(d) {}

  Json config() const {
    require("num_layers");
    require("hidden_size");
    require("num_attention_heads");
    const bool rms = text("normalization", "LayerNorm") == "RMSNorm";
    const bool gated = flag("swiglu");
    for (const char* key : kOtherNetworks)
      if (d_.value.contains(key) && !is_usual(key))
        refuse(key, "layers of other kinds are not read");
    if (flag("multi_latent_attention")) return latent();
    const bool of_transformers =
        rms && gated && positions() == "rope" && !has_biases() && !drops() && dense_layers() == 0;
    if (of_transformers) return has_experts() ? experts() : dense();
    const bool plain = !rms && !gated && !flag("squared_relu") && !flag("qk_layernorm") &&
                       !flag("group_query_attention") && !has_experts() && has_biases();
    return plain && positions() == "learned_absolute" ? gpt2() : any();
  }

 private:
  /// --spec local stands for layers of Megatron-LM's own (pretrain_bert.py).
  bool is_usual(std::string_view key) const { return key == "spec" && text("spec", "") == "local"; }

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
  /// --no-position-embedding stands beside rope in older scripts, where it changes nothing: with
  /// any other type Megatron-LM refuses it (training/arguments.py).
  std::string positions() const {
    if (flag("use_rotary_position_embeddings")) return "rope";
    const std::string type = text("position_embedding_type", "learned_absolute");
    return type != "rope" && flag("no_position_embedding") ? "none" : type;
  }
  /// Both rates are 0.1 unless told otherwise (transformer_config.py).
  double dropout(const char* key) const { return real(key, 0.1); }
  bool drops() const { return dropout("attention_dropout") > 0 || dropout("hidden_dropout") > 0; }
  bool has_biases() const { return !flag("disable_bias_linear"); }
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
    return shared("llama");
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
    Json config = shared("deepseek_v3");
    const std::int64_t width = number("moe_ffn_hidden_size", feed_forward());
    if (has_experts()) {
      config["moe_intermediate_size"] = width;
      config["n_routed_experts"] = number("num_experts", 0);
      config["num_experts_per_tok"] = number("moe_router_topk", 2);
      config["n_shared_experts"] = number("moe_shared_expert_intermediate_size", 0) / width;
    }
    config["first_k_dense_replace"] = has_experts() ? dense_layers() : number("num_layers", 0);
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

  /// Layers without experts at the start: "([0]*1+[1]*26)" of --moe-layer-freq has one.
  std::int64_t dense_layers() const {
    if (!has_experts() || !d_.value.contains("moe_layer_freq")) return 0;
    if (number("moe_layer_freq", 0) == 1) return 0;
    const std::string written = text("moe_layer_freq", "");
    std::string_view left = written;
    const auto skip = [&](std::string_view word) {
      if (!left.starts_with(word)) return false;
      left.remove_prefix(word.size());
      return true;
    };
    const auto layers = [&]() -> std::int64_t {
      std::int64_t count = -1;
      const auto end = std::from_chars(left.data(), left.data() + left.size(), count).ptr;
      left.remove_prefix(static_cast<std::size_t>(end - left.data()));
      return count;
    };
    skip("(");
    const std::int64_t dense = skip("[0]*") ? layers() : 0;
    if (dense > 0) skip("+");
    const bool rest = dense >= 0 && skip("[1]*") && layers() > 0;
    skip(")");
    if (!rest || !left.empty())
      refuse("moe_layer_freq", "layers with experts between layers without are not read");
    return dense;
  }

  double real(const char* key, double otherwise) const {
    const auto found = d_.value.find(key);
    return found != d_.value.end() && found->is_number() ? found->get<double>() : otherwise;
  }

  Json gpt2() const {
    return Json{{"model_type", "gpt2"},
                {"n_embd", number("hidden_size", 0)},
                {"n_inner", feed_forward()},
                {"n_layer", number("num_layers", 0)},
                {"n_head", number("num_attention_heads", 0)},
                {"vocab_size", vocabulary()},
                {"n_positions", number("max_position_embeddings", number("seq_length", 1024))},
                {"attn_pdrop", dropout("attention_dropout")},
                {"resid_pdrop", dropout("hidden_dropout")},
                {"embd_pdrop", dropout("hidden_dropout")},
                {"tie_word_embeddings", !flag("untie_embeddings_and_output_weights")}};
  }

  /// A network that transformers has no class for.
  Json any() const {
    const std::string turns = positions();
    if (turns != "learned_absolute" && turns != "rope" && turns != "none")
      refuse("position_embedding_type", fmt::format("'{}' is not known", turns));
    Json config = shared("megatron_gpt");
    config["normalization"] = text("normalization", "LayerNorm");
    config["gated_linear_unit"] = flag("swiglu");
    config["position_embedding_type"] = turns;
    config["partial_rotary_factor"] = real("rotary_percent", 1.0);
    config["add_bias_linear"] = has_biases();
    config["add_qkv_bias"] = flag("add_qkv_bias");
    config["qk_layernorm"] = flag("qk_layernorm");
    config["attention_dropout"] = dropout("attention_dropout");
    config["hidden_dropout"] = dropout("hidden_dropout");
    config["hidden_act"] = flag("swiglu") ? "silu" : flag("squared_relu") ? "relu2" : "gelu";
    if (!has_experts()) return config;
    config["num_experts"] = number("num_experts", 0);
    config["num_experts_per_tok"] = number("moe_router_topk", 2);
    config["moe_intermediate_size"] = number("moe_ffn_hidden_size", feed_forward());
    config["shared_expert_intermediate_size"] = number("moe_shared_expert_intermediate_size", 0);
    config["first_k_dense_replace"] = dense_layers();
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
    // core/tokenizers/text/libraries/tiktoken_tokenizer.py: 2^17 unless --vocab-size says less.
    TokenizerWords{"TikTokenizer", 131072},
};

/// Files of vocabularies that NVIDIA's own arguments name, by how their path ends.
constexpr std::array kVocabularyFiles{
    TokenizerWords{"nemotron_2_256k.model", 256000},  // of Nemotron-4
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
  if (model != arguments.value.end() && model->is_string()) {
    const auto& path = model->get_ref<const std::string&>();
    if (const auto known = find_model(path))
      return known->config.value("vocab_size", std::int64_t{0});
    for (const TokenizerWords& file : kVocabularyFiles)
      if (path.ends_with(file.type)) return file.words;
  }
  const auto type = arguments.value.find("tokenizer_type");
  if (type == arguments.value.end() && arguments.value.contains("merge_file"))
    return kTokenizers.front().words;  // a vocabulary with merges is GPT-2's
  if (type == arguments.value.end()) return 0;
  for (const TokenizerWords& t : kTokenizers)
    if (*type == t.type) return t.words;
  return 0;
}

}  // namespace shardplan::importing
