#include "model/tensor_share.h"

#include <cassert>
#include <string_view>

namespace shardplan::validator {
namespace {

/// Whole bands of rows one below the other, and this rank's part of each.
std::vector<Stretch> bands_of_rows(const std::vector<std::int64_t>& whole_rows,
                                   std::int64_t columns, const TensorShare& share) {
  std::vector<Stretch> bands;
  std::int64_t above = 0, here = 0;
  for (const std::int64_t rows : whole_rows) {
    const std::int64_t part = rows / share.ranks;
    bands.push_back({.here = here * columns,
                     .whole = (above + part * share.rank) * columns,
                     .length = part * columns});
    above += rows;
    here += part;
  }
  return bands;
}

/// This rank's columns of every row.
Stretch some_columns(const ParameterSpec& p, const TensorShare& share) {
  return {.whole = p.shape[1] * share.rank,
          .length = p.shape[1],
          .runs = p.shape[0],
          .stride = p.whole[1]};
}

std::string_view module_of(std::string_view parameter) {
  return parameter.substr(0, parameter.find('.'));
}

/// Rows of the whole network's q, k and v, or gate and up.
std::vector<std::int64_t> whole_bands(std::string_view module, const DecoderSpec& s) {
  const std::int64_t ranks = s.share.ranks, inner = s.inner * ranks;
  const std::int64_t query = s.query_heads * s.head_dim * ranks;
  const std::int64_t key = s.key_value_heads * s.head_dim * ranks;
  if (module == "qkv") return {query, key, key};
  if (module == "up") return s.gated() ? std::vector{inner, inner} : std::vector{inner};
  return {};
}

/// Of adapters beside a matrix whose rows are divided A is whole, and B divided as they are; beside
/// one whose columns are, A is divided along them and B whole. Of what is whole each rank makes a
/// part of the gradient: of its rows of the result, or from its columns of the input.
void place_adapter(ParameterSpec& p, const DecoderSpec& s) {
  const std::string_view module = module_of(p.name);
  std::vector<std::int64_t> bands = whole_bands(module, s);
  const bool first = p.name.ends_with(".lora_A");
  p.sharing = first == bands.empty() ? Sharing::parts : Sharing::summed;
  if (p.sharing == Sharing::summed) return;
  if (first) {
    p.stretches = {some_columns(p, s.share)};
    return;
  }
  // GPT-2's c_attn is one layer of all bands; else a band is a layer, which may have no adapter.
  const std::vector<LayerRows> layers = layers_of(s, module == "qkv" ? Linear::qkv : Linear::up);
  if (layers.size() == bands.size())
    for (std::size_t i = layers.size(); i-- > 0;)
      if (!is_adapted(s, layers[i])) bands.erase(bands.begin() + static_cast<std::ptrdiff_t>(i));
  p.stretches = bands_of_rows(bands, s.lora->rank, s.share);
}

/// Where the elements of a parameter that is divided, or summed, come from.
void place(ParameterSpec& p, const DecoderSpec& s) {
  const TensorShare& share = s.share;
  if (share.ranks == 1) return;
  const std::string_view module = module_of(p.name);
  const std::int64_t columns = p.whole.numel() / p.whole[0];
  if (p.name.find(".lora_") != std::string::npos) return place_adapter(p, s);
  if (const std::vector<std::int64_t> bands = whole_bands(module, s); !bands.empty()) {
    p.sharing = Sharing::parts;
    p.stretches = bands_of_rows(bands, columns, share);
  } else if (p.name == "out.weight" || p.name == "down.weight") {
    p.sharing = Sharing::parts;
    p.stretches = {some_columns(p, share)};
  } else if (module == "tokens" || module == "head") {
    p.sharing = Sharing::parts;
    p.stretches = {{.whole = s.first_token() * columns, .length = s.tokens_here() * columns}};
  } else if (module == "router" || module.find("norm") != std::string_view::npos) {
    p.sharing = Sharing::summed;  // each rank's of its rows
  }
}

/// This rank's experts of each parameter.
void place_experts(ParameterSpec& p, const DecoderSpec& s) {
  const std::int64_t here = p.shape.numel();
  p.sharing = Sharing::parts;
  p.stretches = {{.whole = here * s.expert_share.rank, .length = here}};
}

/// Codes and scales are of this rank's part alone: no bytes of the whole matrix's.
void place_bytes(ParameterSpec& p, const DecoderSpec& s) {
  if (s.share.ranks == 1) return;
  p.sharing = Sharing::parts;
  p.stretches = {};
}

/// Of whole experts, each of which is one rank's.
void place_expert_bytes(ParameterSpec& p, const DecoderSpec&) {
  p.sharing = Sharing::parts;
  p.stretches = {};
}

using PlaceRule = void (*)(ParameterSpec&, const DecoderSpec&);

PlaceRule place_in(Unit::Kind kind) {
  switch (kind) {
    case Unit::Kind::experts:
    case Unit::Kind::expert_adapters:
      return place_experts;
    case Unit::Kind::quantized:
      return place_bytes;
    case Unit::Kind::quantized_experts:
      return place_expert_bytes;
    default:
      return place;
  }
}

/// `place` says which elements of the undivided network's parameter `p` has.
void place_in_whole(ParameterSpec& p, const ParameterSpec& whole, PlaceRule place,
                    const DecoderSpec& s) {
  p.whole = whole.shape;
  p.whole_offset = whole.whole_offset;
  place(p, s);
}

}  // namespace

DecoderSpec share_of(const DecoderSpec& whole, const TensorShare& share,
                     const ExpertShare& experts) {
  assert(whole.key_value_heads % share.ranks == 0);
  DecoderSpec s = whole;
  s.query_heads /= share.ranks;
  s.key_value_heads /= share.ranks;
  if (!s.experts) s.inner /= share.ranks;  // experts are whole, on one rank each
  s.share = share;
  s.expert_share = experts;
  assert(s.experts ? s.experts->count % experts.ranks == 0 : whole.inner % share.ranks == 0);
  return s;
}

DecoderLayout lay_out_share(const DecoderSpec& whole, const TensorShare& share,
                            const ExpertShare& experts) {
  const DecoderSpec spec = share_of(whole, share, experts);
  DecoderLayout part = lay_out(spec);
  if (share.ranks == 1 && experts.ranks == 1) return part;
  const DecoderLayout all = lay_out(whole);
  for (std::size_t u = 0; u < part.units.size(); ++u) {
    Unit& unit = part.units[u];
    unit.first_element = all.units[u].first_element;
    // Experts know their places among all.
    for (std::size_t i = 0; !unit.of_experts() && i < unit.quantized.size(); ++i)
      place_in_whole(unit.quantized[i].values, all.units[u].quantized[i].values, place, spec);
    for (std::size_t i = 0; i < unit.parameters.size(); ++i)
      place_in_whole(unit.parameters[i], all.units[u].parameters[i], place_in(unit.kind), spec);
  }
  return part;
}

}  // namespace shardplan::validator
