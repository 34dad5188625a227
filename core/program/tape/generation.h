// A forward pass for generation: the KV cache, and what has no backward pass to be kept for.
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// torch.cat([cached, new]) makes all of it anew. DynamicLayer binds its name to the result at
/// once; a sliding layer makes keys and values before it drops either, and keeps a slice of what it
/// made, whose storage stays whole (transformers/cache_utils.py).
void append_to_cache(Parts& p, const Op& op);

/// Keys and values of all query heads, scaled queries and, for the product, scaled keys; then the
/// softmax, which looks for rows that are masked whole (aten/src/ATen/native/transformers/
/// attention.cpp, _safe_softmax) and fills them in place.
void math_attention_inference(Parts& p, const Op& op);

/// What an op makes beside its result goes at once: row statistics, the fused attention's sums of
/// rows (its kernel for masks makes none without autograd), a boolean mask made additive.
/// `attends`: the op runs the fused attention.
void allocate_side_results(Parts& p, const Op& op, bool attends, DType type);

}  // namespace shardplan::tape
