// Operations that PyTorch does not run as one kernel: attention by separate products. What each
// allocates, keeps and frees; `i` is the
// operation's index in its graph.
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// The gradient is written over the copy of the logits that the forward pass kept: in fp32, which
/// is then cast, or in their own type (megatron/core/tensor_parallel/cross_entropy.py,
/// transformer_engine/pytorch/cross_entropy.py).
void vocabulary_loss_backward(Parts& p, std::size_t i);

/// _scaled_dot_product_attention_math: scaled queries, scaled keys and values of all query heads,
/// and the probabilities are kept; the scores are not.
void math_attention_forward(Parts& p, std::size_t i);
/// The gradients of the probabilities, of the scores, and of queries, keys and values of all heads;
/// those of the keys and values are then summed over their groups.
void math_attention_backward(Parts& p, const Op& op);

}  // namespace shardplan::tape
