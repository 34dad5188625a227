#include "model/pretrained_rows.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "model/adapter_layout.h"

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
  const std::size_t end = unit.find('.', 7);
  return fmt::format("{}.{}.", gpt2 ? "h" : "layers",
                     unit.substr(7, end == std::string::npos ? end : end - 7));
}

using IsStored = std::function<bool(const std::string&)>;

/// Of the experts' unit: "up.weight", gates above, or "down.weight".
std::vector<PretrainedRows> expert_rows(const DecoderSpec& s, const std::string& prefix, bool up,
                                        const IsStored& is_stored) {
  const std::int64_t count = s.experts->count, each = up ? s.up_width() : s.hidden;
  const std::string all = prefix + (up ? "mlp.experts.gate_up_proj" : "mlp.experts.down_proj");
  if (is_stored(all)) return {{all, 0, count * each}};
  const bool mixtral = s.family == "mixtral";
  const std::string experts = prefix + (mixtral ? "block_sparse_moe.experts" : "mlp.experts");
  std::vector<PretrainedRows> rows;
  for (std::int64_t e = 0; e < count; ++e) {
    const auto add = [&](const char* old_name, const char* name, std::int64_t first,
                         std::int64_t many) {
      rows.push_back({fmt::format("{}.{}.{}.weight", experts, e, mixtral ? old_name : name),
                      e * each + first, many});
    };
    if (up) {
      add("w1", "gate_proj", 0, s.inner);
      add("w3", "up_proj", s.inner, s.inner);
    } else {
      add("w2", "down_proj", 0, s.hidden);
    }
  }
  return rows;
}

/// Of the adapters' unit: "qkv.lora_A" or "qkv.lora_B", of each adapted layer one below the other.
std::vector<PretrainedRows> adapter_rows(const DecoderSpec& s, const std::string& prefix,
                                         const std::string& module, const std::string& kind) {
  const bool gpt2 = s.family == "gpt2", first = kind == ".lora_A";
  const bool attention = module == "qkv" || module == "out";
  const char* part = !attention ? "mlp." : gpt2 ? "attn." : "self_attn.";
  std::vector<PretrainedRows> rows;
  std::int64_t above = 0;
  for (const Linear l : kLinears) {
    if (name_of(l) != module) continue;
    for (const LayerRows& layer : layers_of(s, l)) {
      if (!is_adapted(s, layer)) continue;
      const std::int64_t count = first ? s.lora->rank : layer.count;
      rows.push_back({prefix + part + layer.name + kind + ".weight", above, count});
      above += count;
    }
  }
  return rows;
}

/// Of the adapters of experts, as peft 0.21 saves them (tuners/lora/layer.py, ParamWrapper): A is
/// [experts · rank, inputs], B [outputs, rank · experts] in which the expert is the faster. Each
/// parameter of a module is wrapped by itself, the first one innermost.
PretrainedRows expert_adapter_rows(const DecoderSpec& s, const std::string& prefix, bool up,
                                   const std::string& kind) {
  const std::int64_t experts = s.experts->count;
  const bool inside = up && is_adapted_expert(s, Linear::down);
  const std::string name =
      prefix + "mlp.experts." + (inside ? "base_layer." : "") + kind.substr(1) + ".weight";
  if (kind == ".lora_A") return {name, 0, experts * s.lora->rank};
  return {.name = name,
          .count = experts * sides_of(s, up ? Linear::up : Linear::down).outputs,
          .experts_last = experts};
}

}  // namespace

std::int64_t PretrainedRows::stored_at(std::int64_t i, std::int64_t columns) const {
  if (transposed) return i % columns * count + i / columns;
  const std::int64_t each = count / experts_last * columns;  // elements of an expert
  return i % each * experts_last + i / each;
}

std::array<std::int64_t, 2> PretrainedRows::shape(std::int64_t columns) const {
  if (transposed) return {columns, count};
  return {count / experts_last, columns * experts_last};
}

std::vector<PretrainedRows> pretrained_rows(const DecoderSpec& s, const std::string& unit,
                                            const std::string& parameter,
                                            const IsStored& is_stored) {
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
  if (unit.ends_with(".expert_adapters"))
    return {expert_adapter_rows(s, prefix, module == "up", kind)};
  if (unit.ends_with(".adapters")) return adapter_rows(s, prefix, module, kind);
  if (unit.ends_with(".experts")) return expert_rows(s, prefix, module == "up", is_stored);
  if (module == "router") {
    const std::string now = prefix + "mlp.gate.weight";
    return {{is_stored(now) ? now : prefix + "block_sparse_moe.gate.weight", 0, s.experts->count}};
  }
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
