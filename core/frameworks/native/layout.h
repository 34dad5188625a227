// How the native engine lays out a network's parameters, worked out from core's model of it by the
// rules of docs/explanation/validation.md: units, fused projections, padded vocabularies, aligned
// starts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "model/model.h"
#include "plan/parallel.h"

namespace shardplan {

/// Parameters that are gathered, reduced and updated together.
struct NativeUnit {
  std::int64_t elements = 0;  ///< gaps of alignment included
  std::int64_t count = 1;     ///< units alike; none on this stage
  bool experts = false;       ///< of the ranks that have the same experts
  bool frozen = false;        ///< no gradient, no states; divided from stage 3 on
  bool quantized = false;     ///< `elements` are bytes: codes of 4 bits, and their scales
};

/// The matrices of a block.
enum class NativeLinear : std::uint8_t { qkv, out, up, down };
inline constexpr std::array kNativeLinears{NativeLinear::qkv, NativeLinear::out, NativeLinear::up,
                                           NativeLinear::down};

/// Whether ranks that share a layer have columns of the matrix, and sum what they make of theirs;
/// else they have rows of it.
constexpr bool sums_over_ranks(NativeLinear l) {
  return l == NativeLinear::out || l == NativeLinear::down;
}

/// What LoRA does beside one of them.
struct NativeAdapters {
  std::int64_t parts = 0;     ///< of the matrix, adapted each by itself; 0: none is
  std::int64_t rows = 0;      ///< of all of them
  std::int64_t elements = 0;  ///< of the matrix, or of each expert's, where it is stored in 4 bits
};

/// Sizes of a rank's share of a block, per token unless it says otherwise, read off its parameters.
struct NativeBlock {
  std::int64_t hidden = 0;
  std::int64_t packed = 0;       ///< q, k and v of all heads
  std::int64_t query_width = 0;  ///< what the output projection reads
  std::int64_t up = 0;           ///< what the MLP's first product writes, or an expert's
  std::int64_t inner = 0;        ///< what its last one reads
  std::int64_t experts = 0;      ///< of a layer, on all ranks; 0: one MLP for all tokens
  std::int64_t per_token = 0;    ///< experts that a token goes to
  std::int64_t query_heads = 0, key_value_heads = 0;
  bool layer_norm = false;  ///< row means are kept beside the deviations
  bool head_norms = false;
  std::int64_t rank = 0;                   ///< of adapters; 0: there are none
  std::array<NativeAdapters, 4> adapters;  ///< by NativeLinear

  struct Sides {
    std::int64_t outputs, inputs;
  };
  /// Whether each expert of a layer has such a matrix.
  bool of_experts(NativeLinear l) const {
    return experts > 0 && (l == NativeLinear::up || l == NativeLinear::down);
  }
  /// Of the matrices of a block, or of an expert, by NativeLinear.
  std::array<Sides, 4> sides() const {
    return {{{packed, hidden}, {hidden, query_width}, {up, hidden}, {hidden, inner}}};
  }
  const NativeAdapters& of(NativeLinear l) const { return adapters[static_cast<std::size_t>(l)]; }
  /// The first that has adapters; of a block that has any.
  NativeLinear lowest() const {
    const auto adapted = [](const NativeAdapters& a) { return a.parts > 0; };
    const auto at = std::find_if(adapters.begin(), adapters.end() - 1, adapted);
    return static_cast<NativeLinear>(at - adapters.begin());
  }
};

struct NativeLayout {
  bool decoder = true;  ///< otherwise a perceptron: every unit is a block
  bool tied = false;
  NativeUnit embedding, head;
  std::vector<NativeUnit> blocks;          ///< a decoder has one entry
  NativeUnit experts{0, 0, true};          ///< of each block
  NativeUnit adapters{0, 0};               ///< of each block
  NativeUnit expert_adapters{0, 0, true};  ///< of the experts of each block
  NativeUnit quantized{0, 0};              ///< of each block: its matrices, where they have 4 bits
  NativeBlock block;                       ///< decoders
  std::vector<std::int64_t> widths;    ///< perceptrons: inputs, then each layer's padded outputs
  std::int64_t padded_vocabulary = 0;  ///< columns of a rank's logits
  bool rotary = false;
  std::int64_t head_dim = 0;

  std::vector<NativeUnit> units() const;
  /// Those that each block has; of a decoder.
  std::vector<NativeUnit> units_of_block() const;
};

/// `model`: a rank's share (parallel/shard.h) under `parallel`. Throws InputError for a network
/// that the engine does not run.
NativeLayout native_layout(const Model& model, const Parallel& parallel);

}  // namespace shardplan
