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

void add_matrix(Unit& unit, const Unit& plain, int index, BaseStore store) {
  const ParameterSpec& p = plain.parameters[static_cast<std::size_t>(index)];
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
  for (const int matrix : matrices) add_matrix(bytes, plain, matrix, store);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int index = *from[i];
    *to[i] = -1;
    if (index < 0) continue;
    const ParameterSpec& p = plain.parameters[static_cast<std::size_t>(index)];
    const bool matrix = std::find(matrices.begin(), matrices.end(), index) != matrices.end();
    if (!matrix) *to[i] = add_parameter(rest, p.name, p.shape, p.init);
  }
  return {std::move(rest), std::move(bytes)};
}

}  // namespace

DecoderLayout quantize_blocks(const DecoderLayout& plain, BaseStore store) {
  DecoderLayout layout = plain;
  layout.units.clear();
  for (const Unit& unit : plain.units) {
    if (unit.kind != Unit::Kind::block) {
      layout.units.push_back(unit);
      continue;
    }
    auto [rest, bytes] = divide(unit, plain.block, layout.block, store);
    layout.units.push_back(std::move(rest));
    layout.units.push_back(std::move(bytes));
  }
  layout.quantized = true;
  layout.head_unit = static_cast<int>(layout.units.size()) - 1;
  return layout;
}

}  // namespace shardplan::validator
