#include "model/decoder_layout.h"

#include <fmt/format.h>

#include <cmath>

#include "model/quantized_layout.h"

namespace shardplan::validator {
namespace {

constexpr Init kZeros{.kind = Init::Kind::zeros};
constexpr Init kOnes{.kind = Init::Kind::ones};

Init normal(float stddev, std::int64_t rows = 0) {
  return {.kind = Init::Kind::normal, .stddev = stddev, .rows = rows};
}

int add_bias(Unit& unit, bool wanted, std::string name, std::int64_t width) {
  return wanted ? add_parameter(unit, std::move(name), {width}, kZeros) : -1;
}

BlockParameters add_block(Unit& unit, const DecoderSpec& s) {
  const bool shifted = s.norm == NormKind::layer;
  const std::int64_t query_width = s.query_heads * s.head_dim;
  const std::int64_t packed = (s.query_heads + 2 * s.key_value_heads) * s.head_dim;
  const Init inner = normal(s.init_stddev);
  const Init onto_residual =
      s.scaled_init ? normal(s.init_stddev / std::sqrt(2.0F * static_cast<float>(s.layers)))
                    : inner;
  BlockParameters p;
  p.norm1_weight = add_parameter(unit, "norm1.weight", {s.hidden}, kOnes);
  p.norm1_bias = add_bias(unit, shifted, "norm1.bias", s.hidden);
  p.qkv_weight = add_parameter(unit, "qkv.weight", {packed, s.hidden}, inner);
  p.qkv_bias = add_bias(unit, s.qkv_bias, "qkv.bias", packed);
  if (s.head_norms) {
    p.q_norm = add_parameter(unit, "q_norm.weight", {s.head_dim}, kOnes);
    p.k_norm = add_parameter(unit, "k_norm.weight", {s.head_dim}, kOnes);
  }
  p.out_weight = add_parameter(unit, "out.weight", {s.hidden, query_width}, onto_residual);
  p.out_bias = add_bias(unit, s.output_bias, "out.bias", s.hidden);
  p.norm2_weight = add_parameter(unit, "norm2.weight", {s.hidden}, kOnes);
  p.norm2_bias = add_bias(unit, shifted, "norm2.bias", s.hidden);
  if (s.experts) {
    p.router = add_parameter(unit, "router.weight", {s.experts->count, s.hidden}, inner);
    return p;
  }
  p.up_weight = add_parameter(unit, "up.weight", {s.up_width(), s.hidden}, inner);
  p.up_bias = add_bias(unit, s.mlp_bias, "up.bias", s.up_width());
  p.down_weight = add_parameter(unit, "down.weight", {s.hidden, s.inner}, onto_residual);
  p.down_bias = add_bias(unit, s.mlp_bias, "down.bias", s.hidden);
  return p;
}

ExpertParameters add_experts(Unit& unit, const DecoderSpec& s) {
  const std::int64_t here = s.experts_here();
  return {add_parameter(unit, "up.weight", {here, s.up_width(), s.hidden}, normal(s.init_stddev)),
          add_parameter(unit, "down.weight", {here, s.hidden, s.inner}, normal(s.init_stddev))};
}

}  // namespace

DecoderLayout lay_out(const DecoderSpec& s) {
  if (s.lora && s.lora->base != BaseStore::values) {
    DecoderSpec plain = s;
    plain.lora->base = BaseStore::values;
    return quantize_blocks(lay_out(plain), s);
  }
  DecoderLayout layout;
  const Init table = s.tokens_here() > 0 ? normal(s.init_stddev, s.tokens_here()) : kZeros;
  Unit embedding{.name = "embedding", .kind = Unit::Kind::embedding};
  layout.tokens =
      add_parameter(embedding, "tokens.weight", {s.padded_vocabulary(), s.hidden}, table);
  if (!s.rotary)
    layout.positions = add_parameter(embedding, "positions.weight", {s.positions, s.hidden},
                                     normal(s.init_stddev));
  layout.units.push_back(std::move(embedding));

  for (std::int64_t i = 0; i < s.layers; ++i) {
    Unit block{.name = fmt::format("blocks.{}", i)};
    layout.block = add_block(block, s);
    layout.units.push_back(std::move(block));
    if (s.lora) {
      Unit adapters{.name = fmt::format("blocks.{}.adapters", i), .kind = Unit::Kind::adapters};
      layout.adapters = {.rank = s.lora->rank, .scale = s.lora->scale};
      add_adapters(adapters, s, layout.adapters);
      if (layout.adapters.any(false)) layout.units.push_back(std::move(adapters));
    }
    if (!s.experts) continue;
    Unit experts{.name = fmt::format("blocks.{}.experts", i), .kind = Unit::Kind::experts};
    layout.experts = add_experts(experts, s);
    layout.units.push_back(std::move(experts));
    if (!s.lora) continue;
    Unit adapters{.name = fmt::format("blocks.{}.expert_adapters", i),
                  .kind = Unit::Kind::expert_adapters};
    add_expert_adapters(adapters, s, layout.adapters);
    if (layout.adapters.any(true)) layout.units.push_back(std::move(adapters));
  }

  Unit head{.name = "head", .kind = Unit::Kind::head};
  layout.norm_weight = add_parameter(head, "norm.weight", {s.hidden}, kOnes);
  layout.norm_bias = add_bias(head, s.norm == NormKind::layer, "norm.bias", s.hidden);
  if (!s.tied)
    layout.head = add_parameter(head, "head.weight", {s.padded_vocabulary(), s.hidden}, table);
  layout.head_unit = static_cast<int>(layout.units.size());
  layout.units.push_back(std::move(head));
  for (Unit& unit : layout.units) unit.frozen = s.lora && !unit.adapts();
  number_elements(layout.units);
  return layout;
}

}  // namespace shardplan::validator
