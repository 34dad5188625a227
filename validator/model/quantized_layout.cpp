#include "model/quantized_layout.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "device/nf4.h"

namespace shardplan::validator {
namespace {

/// All indices of a block's parameters.
std::array<int*, 15> indices_in(BlockParameters& p) {
  return {&p.norm1_weight, &p.norm1_bias, &p.qkv_weight,  &p.qkv_bias,     &p.q_norm,
          &p.k_norm,       &p.out_weight, &p.out_bias,    &p.norm2_weight, &p.norm2_bias,
          &p.up_weight,    &p.up_bias,    &p.down_weight, &p.down_bias,    &p.router};
}

void add_matrix(Unit& unit, const ParameterSpec& p, BaseStore store) {
  const std::int64_t blocks = ceil_div(p.shape.numel(), kNf4Block);
  constexpr std::int64_t kFloat = 4;
  QuantizedMatrix m{.values = p};
  m.codes =
      add_parameter(unit, p.name + ".codes", {ceil_div(p.shape.numel(), std::int64_t{2})}, {});
  if (store == BaseStore::nf4) {
    m.scales = add_parameter(unit, p.name + ".scales", {blocks * kFloat}, {});
  } else {
    m.scales = add_parameter(unit, p.name + ".scales", {blocks}, {});
    m.outer = add_parameter(unit, p.name + ".outer",
                            {(1 + ceil_div(blocks, kNf4ScaleBlock)) * kFloat}, {});
  }
  unit.quantized.push_back(std::move(m));
}

/// The matrices that a block has itself: beside experts no up and down.
std::vector<int> matrices_of(const BlockParameters& p) {
  std::vector<int> all{p.qkv_weight, p.out_weight, p.up_weight, p.down_weight};
  all.erase(std::remove_if(all.begin(), all.end(), [](int index) { return index < 0; }), all.end());
  return all;
}

/// A block's unit without its matrices, and the unit of those.
std::pair<Unit, Unit> divide(const Unit& plain, const BlockParameters& indices,
                             BlockParameters& left, BaseStore store) {
  Unit rest{.name = plain.name, .kind = plain.kind, .frozen = true};
  Unit bytes{.name = plain.name + ".quantized", .kind = Unit::Kind::quantized, .frozen = true};
  rest.first_element = bytes.first_element = plain.first_element;
  BlockParameters before = indices;
  const auto from = indices_in(before);
  const auto to = indices_in(left);
  const std::vector<int> matrices = matrices_of(indices);
  for (const int matrix : matrices)
    add_matrix(bytes, plain.parameters[static_cast<std::size_t>(matrix)], store);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int index = *from[i];
    *to[i] = -1;
    if (index < 0) continue;
    const ParameterSpec& p = plain.parameters[static_cast<std::size_t>(index)];
    const bool matrix = std::find(matrices.begin(), matrices.end(), index) != matrices.end();
    if (matrix) continue;
    *to[i] = add_parameter(rest, p.name, p.shape, p.init);
    rest.parameters.back().whole_offset = p.whole_offset;  // a router begins as without 4 bits
  }
  return {std::move(rest), std::move(bytes)};
}

/// The experts here, each matrix by itself, so that what it stands for does not depend on where its
/// expert is: all of `up`, then all of `down`. In what they are made from they have their places in
/// the parameters of all experts.
Unit quantize_experts(const Unit& plain, const DecoderSpec& s) {
  Unit bytes{
      .name = plain.name + ".quantized", .kind = Unit::Kind::quantized_experts, .frozen = true};
  bytes.first_element = plain.first_element;
  std::int64_t whole_offset = 0;
  for (const ParameterSpec& all : plain.parameters) {
    const Shape each{all.shape[1], all.shape[2]};
    const std::int64_t elements = each.numel(), first = s.expert_share.rank * all.shape[0];
    for (std::int64_t e = 0; e < all.shape[0]; ++e) {
      ParameterSpec p{.name = all.name, .shape = each, .init = all.init};
      p.whole = {s.experts->count, each[0], each[1]};
      p.whole_offset = whole_offset;
      p.stretches = {{.whole = (first + e) * elements, .length = elements}};
      add_matrix(bytes, p, s.lora->base);
    }
    whole_offset = round_up(whole_offset + s.experts->count * elements, kElementAlignment);
  }
  return bytes;
}

}  // namespace

DecoderLayout quantize_blocks(const DecoderLayout& plain, const DecoderSpec& s) {
  DecoderLayout layout = plain;
  layout.units.clear();
  for (const Unit& unit : plain.units) {
    if (unit.kind == Unit::Kind::experts && s.lora->base_of_experts) {
      layout.units.push_back(quantize_experts(unit, s));
      continue;
    }
    if (unit.kind != Unit::Kind::block) {
      layout.units.push_back(unit);
      continue;
    }
    auto [rest, bytes] = divide(unit, plain.block, layout.block, s.lora->base);
    layout.units.push_back(std::move(rest));
    layout.units.push_back(std::move(bytes));
  }
  layout.quantized = true;
  layout.head_unit = static_cast<int>(layout.units.size()) - 1;
  return layout;
}

}  // namespace shardplan::validator
