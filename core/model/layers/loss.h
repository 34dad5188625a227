// The head of a language model and Hugging Face's losses.
#pragma once

#include "model/layers/basic.h"

namespace shardplan {

/// logits = head(x), upcast to fp32, cross-entropy over all positions (ForCausalLMLoss,
/// ForMaskedLMLoss); returns the scalar loss. `softcap` keeps tanh(logits / cap) too (Gemma 2).
ValueId language_model_loss(Graph& g, const LinearModule& head, ValueId x, bool softcap = false);

}  // namespace shardplan
