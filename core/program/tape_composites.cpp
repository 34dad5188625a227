// Operations that PyTorch does not run as one kernel: weights widened from four bits, the fused
// linear loss, attention by separate products.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "program/tape_state.h"

namespace shardplan {

/// A weight stored in 4 bits is widened to the compute type while a product reads it.
void TapeState::widen_weight(const Op& op) {
  if (op.weight == kNone || !parameter(op.weight).widened) return;
  unref(allocate(checked_mul(parameter(op.weight).numel, size_of(regime_.compute)),
                 Category::workspace));
}

/// Liger's fused linear cross-entropy: for each chunk of tokens the logits, from which the kernel
/// makes their gradient in place; then the gradients of the input and of the head's weight, which
/// are kept for the backward pass (ops/fused_linear_cross_entropy.py).
void TapeState::fused_loss_forward(const Op& op, Node& node) {
  if (!keep_) return;
  const Extent in = graph_.value(op.in[0]).extent;
  const std::int64_t tokens = units(in.scale, sizes_);
  const std::int64_t vocabulary = parameter(op.weight).numel / in.per;
  const std::int64_t chunks = ceil_div(vocabulary, in.per);
  const auto chunk = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(ceil_div(tokens, chunks))));
  const std::int64_t weight =
      checked_mul(parameter(op.weight).numel, size_of(parameter_type(op.weight)));
  const auto keep = [&](std::int64_t bytes, Category category) {
    const StorageId id = allocate(bytes, category);
    save(node, id);
    unref(id);
  };
  keep(bytes_of(in, state(op.in[0]).dtype), Category::logits_and_loss);
  if (trains(op.weight)) keep(weight, Category::gradients);
  const StorageId logits = allocate(
      checked_mul(checked_mul(std::min(chunk, tokens), vocabulary), size_of(regime_.compute)),
      Category::logits_and_loss);
  if (trains(op.weight)) unref(allocate(weight, Category::workspace));  // one chunk's product
  unref(logits);
}

/// Both gradients were made in the forward pass: they are handed on.
void TapeState::fused_loss_backward(const Op& op, Node& node) {
  ref(node.saved[0]);
  give(op.in[0], node.saved[0]);
  if (node.saved_count > 1) unref(node.saved[1]);
  node.saved_count = 1;
  parameter_gradient(op.weight);
}

/// The gradient is written over the copy of the logits that the forward pass kept: in fp32, which
/// is then cast, or in their own type (megatron/core/tensor_parallel/cross_entropy.py,
/// transformer_engine/pytorch/cross_entropy.py).
void TapeState::vocabulary_loss_backward(const Op& op, const Node& node) {
  if (op.side.per > 0) {
    give(op.in[0], gradient_like(op.in[0], state(op.in[0]).dtype));
    return;
  }
  ref(node.saved[0]);
  give(op.in[0], node.saved[0]);
}

/// sdpa with fewer key heads than query heads runs fused in 16-bit types only: the fp32 kernel does
/// not take grouped heads (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp), so PyTorch falls
/// back to separate operations. A mask makes Hugging Face repeat the heads before the call.
bool TapeState::runs_as_math(const Op& op, DType type) const {
  return type == DType::f32 && !is_masked(op) && op.scores_bias == kNone &&
         graph_.value(op.in[1]).extent.per < graph_.value(op.in[0]).extent.per;
}

/// _scaled_dot_product_attention_math: scaled queries, scaled keys and values of all query heads,
/// and the probabilities are kept; the scores are not.
void TapeState::math_attention_forward(const Op& op, Node& node) {
  if (mode_ == TapeMode::infer) return math_attention_inference(op);
  const Extent queries = graph_.value(op.in[0]).extent;
  const Extent keys{queries.per, graph_.value(op.in[1]).extent.scale};
  const Extent scores{op.side.per, op.work.scale};
  const std::array<StorageId, 3> copies{temporary(queries, DType::f32), temporary(keys, DType::f32),
                                        temporary(keys, DType::f32)};
  const StorageId logits = temporary(scores, DType::f32);
  const StorageId probabilities = temporary(scores, DType::f32);
  unref(logits);
  for (const StorageId id : {copies[0], copies[1], copies[2], probabilities}) {
    if (keep_) save(node, id);
    unref(id);
  }
}

/// The gradients of the probabilities, of the scores, and of queries, keys and values of all heads;
/// those of the keys and values are then summed over their groups.
void TapeState::math_attention_backward(const Op& op) {
  const Extent queries = graph_.value(op.in[0]).extent;
  const Extent keys{queries.per, graph_.value(op.in[1]).extent.scale};
  const Extent scores{op.side.per, op.work.scale};
  const StorageId d_values = temporary(keys, DType::f32);
  const StorageId d_probabilities = temporary(scores, DType::f32);
  const StorageId d_scores = temporary(scores, DType::f32);
  unref(temporary(scores, DType::f32));  // softmax: gradient·output
  unref(d_probabilities);
  const StorageId d_queries = temporary(queries, DType::f32);
  const StorageId d_keys = temporary(keys, DType::f32);
  unref(d_scores);
  give(op.in[0], d_queries);
  for (const auto& [in, all] : {std::pair{op.in[1], d_keys}, std::pair{op.in[2], d_values}}) {
    const StorageId sum = gradient_like(in, DType::f32);
    unref(all);
    give(in, sum);
  }
}

}  // namespace shardplan
