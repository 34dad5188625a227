// The norms that Hugging Face's classes write out themselves, beside torch.nn.LayerNorm.
#pragma once

#include "model/layers/basic.h"

namespace shardplan {

enum class NormKind : std::uint8_t {
  rms,             ///< LlamaRMSNorm: the weight multiplies after the cast back
  rms_wide,        ///< Olmo2RMSNorm: the weight multiplies in fp32
  gemma,           ///< GemmaRMSNorm: 1 + weight, in fp32
  layer,           ///< torch.nn.LayerNorm
  layer_bare,      ///< OlmoLayerNorm: without parameters, in fp32
  layer_one_plus,  ///< NemotronLayerNorm1P: 1 + weight, in the type of products
  cohere,  ///< CohereLayerNorm: mean and variance in separate operations, fp32 weight, no bias
};

/// Registers a norm of `kind` over `width` elements.
NormModule register_norm(ModelBuilder& m, NormKind kind, std::string_view name, std::int64_t width);

/// Normalises groups of m.width elements; `weights` elements of weight serve them (a multiple of
/// the width where heads have weights of their own).
ValueId normalize(Graph& g, NormKind kind, const NormModule& m, ValueId x,
                  std::int64_t weights = 0);
/// The same where Liger leaves a network's own norm in place.
ValueId normalize_unpatched(Graph& g, NormKind kind, const NormModule& m, ValueId x,
                            std::int64_t weights = 0);

}  // namespace shardplan
