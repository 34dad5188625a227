#include "model/pretrained_rows.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace shardplan::validator {
namespace {

/// The engine's module names beside the checkpoint's.
struct Module {
  std::string_view ours, gpt2, rotary;
};
constexpr std::array<Module, 10> kModules{{{"tokens", "wte", "embed_tokens"},
                                           {"positions", "wpe", ""},
                                           {"norm1", "ln_1", "input_layernorm"},
                                           {"out", "attn.c_proj", "self_attn.o_proj"},
                                           {"q_norm", "", "self_attn.q_norm"},
                                           {"k_norm", "", "self_attn.k_norm"},
                                           {"norm2", "ln_2", "post_attention_layernorm"},
                                           {"down", "mlp.c_proj", "mlp.down_proj"},
                                           {"norm", "ln_f", "norm"},
                                           {"head", "lm_head", "lm_head"}}};

std::string block_prefix(const std::string& unit, bool gpt2) {
  if (!unit.starts_with("blocks.")) return "";
  return fmt::format("{}.{}.", gpt2 ? "h" : "layers", unit.substr(7));
}

}  // namespace

std::vector<PretrainedRows> pretrained_rows(const DecoderSpec& s, const std::string& unit,
                                            const std::string& parameter) {
  const bool gpt2 = s.family == "gpt2";
  const std::size_t dot = parameter.find('.');
  const std::string module = parameter.substr(0, dot), kind = parameter.substr(dot);
  const std::string prefix = block_prefix(unit, gpt2);
  const bool transposed =
      gpt2 && kind == ".weight" && !prefix.empty() && module.find("norm") == std::string::npos;
  const std::int64_t query = s.query_heads * s.head_dim, key = s.key_value_heads * s.head_dim;
  const auto whole = [&](std::string_view name, std::int64_t rows) {
    return PretrainedRows{prefix + std::string(name) + kind, 0, rows, transposed};
  };
  if (module == "qkv" && gpt2) return {whole("attn.c_attn", query + 2 * key)};
  if (module == "qkv")
    return {{prefix + "self_attn.q_proj" + kind, 0, query},
            {prefix + "self_attn.k_proj" + kind, query, key},
            {prefix + "self_attn.v_proj" + kind, query + key, key}};
  if (module == "up" && gpt2) return {whole("mlp.c_fc", s.inner)};
  if (module == "up")
    return {{prefix + "mlp.gate_proj" + kind, 0, s.inner},
            {prefix + "mlp.up_proj" + kind, s.inner, s.inner}};
  std::int64_t rows = s.hidden;
  if (module == "tokens" || module == "head") rows = s.vocabulary;
  if (module == "positions") rows = s.positions;
  if (module == "q_norm" || module == "k_norm") rows = s.head_dim;
  for (const Module& m : kModules)
    if (m.ours == module) return {whole(gpt2 ? m.gpt2 : m.rotary, rows)};
  return {};
}

}  // namespace shardplan::validator
