// The network of DeepSeek-V2, V3 and V3.2 and of GLM 5: latent attention, shared experts, dense
// layers among sparse ones.
#pragma once

#include <optional>

#include "model/config.h"
#include "model/layers/key_choice.h"
#include "model/layers/sparse_mlp.h"

namespace shardplan {

/// Kinds of its layers, bits beside kSparseLayer.
inline constexpr int kIndexingLayer = 4;  ///< chooses the keys of its attention itself

struct DeepSeek {
  RouterScore score = RouterScore::sigmoid_f32;
  std::int64_t ffn, expert_ffn, shared_ffn, experts, top_k;
  bool normalize = true, mlp_bias = false;
  RotaryForm rotary = RotaryForm::interleaved;
  LatentShape attention;
  std::optional<KeyIndexerShape> indexer;  ///< attention is to chosen keys in every layer
  bool carries_choice = false;             ///< from layer to layer
  Activation activation = Activation::silu;
};

/// `facts` without what `stack` says.
Model build_deepseek(const ModelConfig& config, const BuildOptions& options, const DeepSeek& d,
                     const DecoderStack& stack, std::int64_t max_positions);

}  // namespace shardplan
