// The head of a language model and Hugging Face's losses.
#pragma once

#include "model/layers/basic.h"

namespace shardplan {

/// What a class does to its logits before the loss.
enum class LogitMap : std::uint8_t {
  none,
  scale,    ///< times a number (Cohere)
  softcap,  ///< tanh(logits / cap)·cap, which keeps the tanh (Gemma 2)
  upcast,   ///< .float() at once: nothing names the narrow ones (Mamba, Nemotron-H)
};

/// logits = head(x), upcast to fp32, cross-entropy over all positions (ForCausalLMLoss,
/// ForMaskedLMLoss); returns the scalar loss.
ValueId language_model_loss(Graph& g, const LinearModule& head, ValueId x,
                            LogitMap map = LogitMap::none);

/// The model's output object has `logits` beside `loss`, and its caller may cast them to fp32.
void return_logits(Graph& g, ValueId logits, ValueId loss);

/// Writes the last segment of a causal model: its final LayerNorm, the head and the loss.
void add_causal_head(ModelBuilder& m, const NormModule& norm, const LinearModule& head);

}  // namespace shardplan
