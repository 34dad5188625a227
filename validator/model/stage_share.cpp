#include "model/stage_share.h"

#include <cassert>
#include <utility>

namespace shardplan::validator {
namespace {

/// The tokens of a tied embedding, for the head.
Unit copy_of_tokens(const DecoderLayout& whole) {
  const Unit& embedding = whole.units.front();
  ParameterSpec tokens = embedding.parameters[static_cast<std::size_t>(whole.tokens)];
  tokens.ends = Ends::copy;
  Unit unit{.name = embedding.name, .kind = embedding.kind, .frozen = embedding.frozen};
  unit.first_element = embedding.first_element;
  unit.numel = round_up(tokens.shape.numel(), kElementAlignment);
  unit.parameters.push_back(std::move(tokens));
  return unit;
}

}  // namespace

DecoderLayout stage_layout(const DecoderLayout& whole, const StageShare& share) {
  if (share.stages == 1) return whole;
  const int blocks = (static_cast<int>(whole.units.size()) - 2) / whole.units_of_block();
  const int chunk = blocks / (share.stages * share.chunks);
  assert(chunk * share.stages * share.chunks == blocks);
  const bool tied = whole.head < 0;
  DecoderLayout part = whole;
  part.units.clear();
  part.embedding_unit = DecoderLayout::kNone;
  if (share.first()) {
    part.units.push_back(whole.units.front());
    if (tied)
      part.units.back().parameters[static_cast<std::size_t>(whole.tokens)].ends = Ends::original;
  } else if (share.last() && tied) {
    part.units.push_back(copy_of_tokens(whole));
    part.tokens = 0;
    part.positions = DecoderLayout::kNone;
  }
  if (!part.units.empty()) part.embedding_unit = 0;
  for (int c = 0; c < share.chunks; ++c)
    for (int i = 0; i < chunk; ++i) {
      const int first = whole.block_unit((c * share.stages + share.stage) * chunk + i);
      for (int u = first; u < first + whole.units_of_block(); ++u)
        part.units.push_back(whole.units[static_cast<std::size_t>(u)]);
    }
  part.head_unit = DecoderLayout::kNone;
  if (share.last()) {
    part.head_unit = static_cast<int>(part.units.size());
    part.units.push_back(whole.units.back());
  }
  return part;
}

}  // namespace shardplan::validator
