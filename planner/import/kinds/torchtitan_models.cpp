#include "import/kinds/torchtitan_models.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/checked.h"

namespace shardplan::importing {
namespace {

struct LlamaFlavor {
  std::string_view flavor;
  std::int64_t dim, layers, heads, kv_heads, vocabulary, multiple_of;
  double multiplier;
};

/// models/llama3/__init__.py.
constexpr std::array kLlama3{
    LlamaFlavor{"debugmodel", 256, 6, 16, 16, 2048, 256, 0},
    LlamaFlavor{"8B", 4096, 32, 32, 8, 128256, 1024, 1.3},
    LlamaFlavor{"70B", 8192, 80, 64, 8, 128256, 4096, 1.3},
    LlamaFlavor{"405B", 16384, 126, 128, 8, 128256, 4096, 1.2},
};

/// models/llama3/model/model.py, FeedForward: two thirds of four times the width, stretched and
/// rounded up.
std::int64_t feed_forward(const LlamaFlavor& f) {
  std::int64_t width = 8 * f.dim / 3;
  if (f.multiplier > 0)
    width = static_cast<std::int64_t>(f.multiplier * static_cast<double>(width));
  return round_up(width, f.multiple_of);
}

Json llama(const LlamaFlavor& f) {
  return Json{{"model_type", "llama"},
              {"hidden_size", f.dim},
              {"intermediate_size", feed_forward(f)},
              {"num_hidden_layers", f.layers},
              {"num_attention_heads", f.heads},
              {"num_key_value_heads", f.kv_heads},
              {"vocab_size", f.vocabulary},
              {"max_position_embeddings", 131072},
              {"tie_word_embeddings", false}};
}

struct QwenFlavor {
  std::string_view flavor;
  std::int64_t dim, layers, heads, kv_heads, hidden, vocabulary, experts, expert_hidden;
  bool tied;
};

/// models/qwen3/__init__.py.
constexpr std::array kQwen3{
    QwenFlavor{"debugmodel", 256, 8, 16, 8, 3072, 2048, 0, 0, true},
    QwenFlavor{"0.6B", 1024, 28, 16, 8, 3072, 151936, 0, 0, true},
    QwenFlavor{"1.7B", 2048, 28, 16, 8, 6144, 151936, 0, 0, true},
    QwenFlavor{"4B", 2560, 36, 32, 8, 9728, 151936, 0, 0, true},
    QwenFlavor{"8B", 4096, 36, 32, 8, 12288, 151936, 0, 0, false},
    QwenFlavor{"14B", 5120, 40, 40, 8, 17408, 151936, 0, 0, false},
    QwenFlavor{"32B", 5120, 64, 64, 8, 25600, 151936, 0, 0, false},
    QwenFlavor{"debugmodel_moe", 256, 8, 16, 8, 3072, 2048, 64, 768, false},
    QwenFlavor{"30B-A3B", 2048, 48, 32, 4, 6144, 151936, 128, 768, false},
    QwenFlavor{"235B-A22B", 4096, 94, 64, 4, 12288, 151936, 128, 1536, false},
};

Json qwen(const QwenFlavor& f) {
  Json config{{"model_type", f.experts > 0 ? "qwen3_moe" : "qwen3"},
              {"hidden_size", f.dim},
              {"intermediate_size", f.hidden},
              {"num_hidden_layers", f.layers},
              {"num_attention_heads", f.heads},
              {"num_key_value_heads", f.kv_heads},
              {"head_dim", 128},
              {"vocab_size", f.vocabulary},
              {"max_position_embeddings", 262144},
              {"tie_word_embeddings", f.tied}};
  if (f.experts == 0) return config;
  config["num_experts"] = f.experts;
  config["num_experts_per_tok"] = 8;
  config["moe_intermediate_size"] = f.expert_hidden;
  return config;
}

struct DeepSeekFlavor {
  std::string_view flavor;
  std::int64_t dim, hidden, expert_hidden, layers, dense, heads, experts, shared, chosen, q_rank,
      vocabulary;
};

/// models/deepseek_v3/__init__.py and model/args.py.
constexpr std::array kDeepSeekV3{
    DeepSeekFlavor{"debugmodel", 256, 1024, 256, 6, 1, 16, 8, 2, 3, 0, 2048},
    DeepSeekFlavor{"16B", 2048, 10944, 1408, 27, 1, 16, 64, 2, 6, 0, 102400},
    DeepSeekFlavor{"236B", 5120, 12288, 1536, 60, 1, 128, 160, 2, 6, 1536, 102400},
    DeepSeekFlavor{"671B", 7168, 18432, 2048, 61, 3, 128, 256, 1, 8, 1536, 129280},
};

Json deepseek(const DeepSeekFlavor& f) {
  Json config{{"model_type", "deepseek_v3"},
              {"hidden_size", f.dim},
              {"intermediate_size", f.hidden},
              {"moe_intermediate_size", f.expert_hidden},
              {"num_hidden_layers", f.layers},
              {"first_k_dense_replace", f.dense},
              {"num_attention_heads", f.heads},
              {"num_key_value_heads", f.heads},
              {"n_routed_experts", f.experts},
              {"n_shared_experts", f.shared},
              {"num_experts_per_tok", f.chosen},
              {"kv_lora_rank", 512},
              {"qk_nope_head_dim", 128},
              {"qk_rope_head_dim", 64},
              {"v_head_dim", 128},
              {"n_group", 1},
              {"topk_group", 1},
              {"vocab_size", f.vocabulary},
              {"max_position_embeddings", 163840},
              {"tie_word_embeddings", false}};
  config["q_lora_rank"] = f.q_rank == 0 ? Json() : Json(f.q_rank);
  return config;
}

struct Llama4Flavor {
  std::string_view flavor;
  std::int64_t dim, layers, heads, kv_heads, vocabulary, multiple_of, experts, every;
  double multiplier;
};

/// models/llama4/__init__.py, model/args.py and models/moe/moe.py (MoEArgs).
constexpr std::array kLlama4{
    Llama4Flavor{"debugmodel", 256, 6, 16, 16, 2048, 256, 8, 2, 1.0},
    Llama4Flavor{"17bx16e", 5120, 48, 40, 8, 202048, 2048, 16, 1, 1.2},
    Llama4Flavor{"17bx128e", 5120, 48, 40, 8, 202048, 2048, 128, 2, 1.2},
};

/// torchtitan's Llama 4 is no transformers' one: each expert multiplies the tokens that chose it,
/// and heads have no norm. ERNIE 4.5's network has the same tensors: a router with a correction,
/// experts, one shared expert, each second layer dense (modelled: from the source alone).
Json llama4(const Llama4Flavor& f) {
  const auto stretched =
      static_cast<std::int64_t>(f.multiplier * static_cast<double>(8 * f.dim / 3));
  const std::int64_t expert = round_up(stretched / 2, f.multiple_of);  // one chosen, one shared
  return Json{{"model_type", "ernie4_5_moe"},
              {"hidden_size", f.dim},
              {"intermediate_size", round_up(stretched, f.multiple_of)},
              {"moe_intermediate_size", expert},
              {"num_hidden_layers", f.layers},
              {"num_attention_heads", f.heads},
              {"num_key_value_heads", f.kv_heads},
              {"moe_num_experts", f.experts},
              {"moe_k", 1},
              {"moe_num_shared_experts", 1},
              {"moe_layer_start_index", 0},
              {"moe_layer_interval", f.every},
              {"use_bias", false},
              {"vocab_size", f.vocabulary},
              {"max_position_embeddings", 1048576},
              {"tie_word_embeddings", false}};
}

struct GptOssFlavor {
  std::string_view flavor;
  std::int64_t dim, layers, experts, vocabulary;
};

/// models/gpt_oss/__init__.py and model/args.py.
constexpr std::array kGptOss{
    GptOssFlavor{"debugmodel", 256, 4, 8, 2048},
    GptOssFlavor{"20b", 2880, 24, 32, 201088},
    GptOssFlavor{"120b", 2880, 36, 128, 201088},
};

Json gpt_oss(const GptOssFlavor& f) {
  return Json{{"model_type", "gpt_oss"},
              {"hidden_size", f.dim},
              {"intermediate_size", 2880},
              {"num_hidden_layers", f.layers},
              {"num_attention_heads", 64},
              {"num_key_value_heads", 8},
              {"head_dim", 64},
              {"num_local_experts", f.experts},
              {"num_experts_per_tok", 4},
              {"vocab_size", f.vocabulary},
              {"max_position_embeddings", 131072},
              {"tie_word_embeddings", false}};
}

/// Attention of another kernel, the same network: "8B_flex", "debugmodel_varlen_attn".
std::string_view without_attention(std::string_view flavor) {
  for (const std::string_view end : {"_flex_attn", "_varlen_attn", "_flex", "_varlen"})
    if (flavor.ends_with(end)) return flavor.substr(0, flavor.size() - end.size());
  return flavor;
}

template <typename Flavors, typename Make>
std::optional<Json> find(const Flavors& flavors, std::string_view flavor, Make make) {
  for (const auto& f : flavors)
    if (f.flavor == flavor) return make(f);
  return std::nullopt;
}

template <typename Flavors>
std::vector<std::string> names_of(const Flavors& flavors) {
  std::vector<std::string> names;
  for (const auto& f : flavors) names.emplace_back(f.flavor);
  return names;
}

}  // namespace

std::optional<Json> torchtitan_model(std::string_view name, std::string_view flavor) {
  flavor = without_attention(flavor);
  if (name == "llama3" || name == "llama3_ft") return find(kLlama3, flavor, llama);
  if (name == "llama4") return find(kLlama4, flavor, llama4);
  if (name == "qwen3") return find(kQwen3, flavor, qwen);
  if (name == "deepseek_v3") return find(kDeepSeekV3, flavor, deepseek);
  if (name == "gpt_oss") return find(kGptOss, flavor, gpt_oss);
  return std::nullopt;
}

std::vector<std::string> torchtitan_flavors(std::string_view name) {
  if (name == "llama3" || name == "llama3_ft") return names_of(kLlama3);
  if (name == "llama4") return names_of(kLlama4);
  if (name == "qwen3") return names_of(kQwen3);
  if (name == "deepseek_v3") return names_of(kDeepSeekV3);
  if (name == "gpt_oss") return names_of(kGptOss);
  return {};
}

std::vector<std::string> torchtitan_names() {
  return {"llama3", "llama4", "qwen3", "deepseek_v3", "gpt_oss"};
}

void shrink_to_debug_model(Json& config) {
  config["hidden_size"] = 256;
  config["num_hidden_layers"] = 2;
  config["num_attention_heads"] = config["num_key_value_heads"] = 16;
  config["head_dim"] = 16;
  config["intermediate_size"] = 768;  // two thirds of four times 256, rounded up to 256s
  config["attention_bias"] = config["mlp_bias"] = false;
  config.erase("layer_types");
}

}  // namespace shardplan::importing
