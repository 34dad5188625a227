// Modules applied in a graph: what `module(x)` does in the forward pass.
#pragma once

#include "model/builder.h"

namespace shardplan {

/// Token ids of `scale` looked up in a table: [tokens, width]. `indices`: those that are no input
/// of the model but made of it, and kept.
ValueId apply(Graph& g, const EmbeddingModule& m, Scale scale, Extent indices = {});

/// The same of a module that multiplies what it looks up (transformers'
/// GemmaTextScaledWordEmbedding).
ValueId apply_scaled(Graph& g, const EmbeddingModule& m, Scale scale, Extent indices = {});

/// x·Wᵀ + b, and what adapters add where the module carries them.
ValueId apply(Graph& g, const LinearModule& m, ValueId x);

/// torch.nn.LayerNorm: one fused kernel.
ValueId layer_norm(Graph& g, const NormModule& m, ValueId x, const FusedKernel* kernel = nullptr);

/// A norm without a mean in one kernel, as Transformer Engine has it.
ValueId rms_norm_in_one(Graph& g, const NormModule& m, ValueId x,
                        const FusedKernel* kernel = nullptr);

/// Hugging Face's LlamaRMSNorm: to fp32, x·rsqrt(mean(x²) + ε), back, times the weight.
ValueId rms_norm(Graph& g, const NormModule& m, ValueId x);

/// Dropout in training; `probability` 0 returns x itself, as torch does.
ValueId dropout(Graph& g, ValueId x, double probability);

/// A parameter as a tensor of `size` elements.
ValueId parameter_value(Graph& g, const ModelBuilder& m, ParameterId id, std::int64_t size);

/// A reshaped view of the same elements, with another extent: heads split off, slices taken.
ValueId slice(Graph& g, ValueId x, std::int64_t per);
/// One that comes in a list with the others (Op::splits).
ValueId part(Graph& g, ValueId x, std::int64_t per);

/// The element count per unit of scale.
inline std::int64_t per(const Graph& g, ValueId x) {
  return g.value(x).extent.per;
}

}  // namespace shardplan
