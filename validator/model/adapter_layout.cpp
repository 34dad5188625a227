#include "model/adapter_layout.h"

#include <algorithm>
#include <cmath>

namespace shardplan::validator {
std::string_view name_of(Linear l) {
  constexpr std::array<std::string_view, kLinears.size()> kNames{"qkv", "out", "up", "down"};
  return kNames[static_cast<std::size_t>(l)];
}

MatrixSides sides_of(const DecoderSpec& s, Linear l) {
  const std::int64_t query = s.query_heads * s.head_dim;
  switch (l) {
    case Linear::qkv:
      return {query + 2 * s.key_value_heads * s.head_dim, s.hidden};
    case Linear::out:
      return {s.hidden, query};
    case Linear::up:
      return {s.up_width(), s.hidden};
    case Linear::down:
      break;
  }
  return {s.hidden, s.inner};
}

bool is_adapted(const DecoderSpec& s, const LayerRows& layer) {
  const std::vector<std::string>& targets = s.lora->targets;
  if (targets.size() == 1 && targets.front() == "all-linear") return true;
  return std::find(targets.begin(), targets.end(), layer.name) != targets.end();
}

Linear AdapterParameters::lowest() const {
  return *std::find_if(kLinears.begin(), kLinears.end() - 1,
                       [&](Linear l) { return !of(l).parts.empty(); });
}

std::vector<LayerRows> layers_of(const DecoderSpec& s, Linear l) {
  const bool gpt2 = s.family == "gpt2";
  const std::int64_t query = s.query_heads * s.head_dim, key = s.key_value_heads * s.head_dim;
  switch (l) {
    case Linear::qkv:
      if (gpt2) return {{"c_attn", 0, query + 2 * key}};
      return {{"q_proj", 0, query}, {"k_proj", query, key}, {"v_proj", query + key, key}};
    case Linear::out:
      return {{gpt2 ? "c_proj" : "o_proj", 0, s.hidden}};
    case Linear::up:
      if (gpt2) return {{"c_fc", 0, s.inner}};
      return {{"gate_proj", 0, s.inner}, {"up_proj", s.inner, s.inner}};
    case Linear::down:
      break;
  }
  return {{gpt2 ? "c_proj" : "down_proj", 0, s.hidden}};
}

bool AdapterParameters::any(bool of_experts) const {
  return std::any_of(linears.begin(), linears.end(), [&](const OfLinear& of) {
    return !of.parts.empty() && of.of_experts == of_experts;
  });
}

std::string_view expert_matrix(Linear l) {
  return l == Linear::up ? "gate_up_proj" : "down_proj";
}

bool is_adapted_expert(const DecoderSpec& s, Linear l) {
  const std::string name = ".mlp.experts." + std::string(expert_matrix(l));
  const std::vector<std::string>& targets = s.lora->parameters;
  return std::any_of(targets.begin(), targets.end(),
                     [&](const std::string& target) { return name.ends_with("." + target); });
}

void add_adapters(Unit& unit, const DecoderSpec& s, AdapterParameters& adapters) {
  for (const Linear l : kLinears) {
    const bool of_experts = s.experts && (l == Linear::up || l == Linear::down);
    if (of_experts) continue;  // no linear layers of transformers
    AdapterParameters::OfLinear& of = adapters.of(l);
    std::int64_t rows = 0;
    for (LayerRows& layer : layers_of(s, l)) {
      if (!is_adapted(s, layer)) continue;
      rows += layer.count;
      of.parts.push_back(std::move(layer));
    }
    if (of.parts.empty()) continue;
    const std::string name(name_of(l));
    const std::int64_t inputs = sides_of(s, l).inputs,
                       parts = static_cast<std::int64_t>(of.parts.size());
    // Ranks that share a layer have parts of these inputs each, and draw as for all of them.
    const bool divided = l == Linear::out || l == Linear::down;
    const std::int64_t whole_inputs = divided ? inputs * s.share.ranks : inputs;
    const Init a{.kind = Init::Kind::normal,
                 .stddev = 1 / std::sqrt(3.0F * static_cast<float>(whole_inputs))};
    of.a = add_parameter(unit, name + ".lora_A", {parts * adapters.rank, inputs}, a);
    of.b = add_parameter(unit, name + ".lora_B", {rows, adapters.rank}, {});
  }
}

void add_expert_adapters(Unit& unit, const DecoderSpec& s, AdapterParameters& adapters) {
  for (const Linear l : {Linear::up, Linear::down}) {
    if (!is_adapted_expert(s, l)) continue;
    const MatrixSides sides = sides_of(s, l);
    const std::string name(name_of(l));
    const Init a{.kind = Init::Kind::normal,
                 .stddev = 1 / std::sqrt(3.0F * static_cast<float>(sides.inputs))};
    const std::int64_t experts = s.experts_here(), rank = adapters.rank;
    adapters.of(l) = {
        .a = add_parameter(unit, name + ".lora_A", {experts, rank, sides.inputs}, a),
        .b = add_parameter(unit, name + ".lora_B", {experts, sides.outputs, rank}, {}),
        .parts = {{std::string(expert_matrix(l)), 0, sides.outputs}},
        .of_experts = true};
  }
}

}  // namespace shardplan::validator
