// Per operation: the type it runs in under autocast, the type of its result, what it saves.
#pragma once

#include "formats/dtype.h"
#include "model/graph.h"

namespace shardplan {

enum class AutocastRule : std::uint8_t { low, full, widest };

/// aten/src/ATen/autocast_mode.h: lists of lower-precision and fp32 operations.
constexpr AutocastRule autocast_rule(OpKind kind) {
  switch (kind) {
    case OpKind::linear:
    case OpKind::matmul:
    case OpKind::sdpa:
      return AutocastRule::low;
    case OpKind::power:
    case OpKind::rsqrt:
    case OpKind::exponential:
    case OpKind::softplus:
    case OpKind::softmax:
    case OpKind::softmax_f32:
    case OpKind::log_softmax:
    case OpKind::log_sum_exp:
    case OpKind::layer_norm:
    case OpKind::nll_loss:
      return AutocastRule::full;
    default:
      return AutocastRule::widest;
  }
}

/// Whether a boolean mask says which elements or rows are meant: the host waits for the GPU, in
/// both passes, to know how many there are (masked_scatter's backward pass, index_put and its;
/// transformers' torch_compilable_check of images' tokens).
constexpr bool host_reads_places(OpKind kind) {
  return kind == OpKind::place_elements || kind == OpKind::place_rows;
}

/// Attention of an encoder's tokens to all of them. While Dynamo traces, transformers makes a mask
/// for it that is expanded from one column, which no fused kernel takes.
inline bool sees_all_tokens(const Op& op) {
  return op.kind == OpKind::sdpa && !op.causal && op.mask.per == 0 && op.scores_bias == kNone &&
         op.side.scale == Scale::tokens;
}

/// PyTorch's promotion of two floating types.
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  return DType::f32;
}

/// Which tensors a node keeps until its backward has run.
struct SaveRule {
  bool inputs = false;  ///< each input (after an autocast cast)
  bool output = false;
  bool first = false;    ///< the first input
  bool crossed = false;  ///< each of two inputs, if the other one needs a gradient
};

constexpr SaveRule save_rule(OpKind kind) {
  switch (kind) {
    case OpKind::mul:
    case OpKind::matmul:
    case OpKind::rotary:
      return {.crossed = true};
    case OpKind::power:
    case OpKind::clamp:
    case OpKind::pool:
    case OpKind::silu:
    case OpKind::softplus:
    case OpKind::gelu:
    case OpKind::layer_norm:
    case OpKind::rms_norm:
    case OpKind::gated:
    case OpKind::nll_loss:
      return {.inputs = true};
    case OpKind::rsqrt:
    case OpKind::square_root:
    case OpKind::tanh:
    case OpKind::sigmoid:
    case OpKind::exponential:
    case OpKind::relu:
    case OpKind::softmax:
    case OpKind::softmax_f32:
    case OpKind::log_softmax:
      return {.output = true};
    case OpKind::solve:
      return {.output = true, .first = true};
    case OpKind::gather_columns:
      return {.first = true};
    case OpKind::sdpa:
    case OpKind::deviation:
    case OpKind::log_sum_exp:
      return {.inputs = true, .output = true};
    default:
      return {};
  }
}

/// Conversions, which return their input when it has the type already.
constexpr bool is_cast(OpKind kind) {
  return kind == OpKind::to_f32 || kind == OpKind::to_adapter || kind == OpKind::to_like ||
         kind == OpKind::to_compute;
}

/// Whose inputs get the gradient of the result itself, where size and type are the same.
constexpr bool passes_gradient(OpKind kind) {
  return kind == OpKind::add || kind == OpKind::copy || kind == OpKind::fold_heads ||
         kind == OpKind::view || is_cast(kind);
}

/// What selective checkpointing does not compute again.
constexpr bool is_product(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::grouped_linear || kind == OpKind::matmul ||
         kind == OpKind::sdpa;
}

/// Whose kernel writes the result over its first input.
inline bool writes_input(const Op& op) {
  return op.in_place != InPlace::no || (op.fused != nullptr && op.fused->writes_input);
}

/// Operations whose result is their input's storage.
constexpr bool is_alias(OpKind kind, const Sizes& sizes) {
  return kind == OpKind::view || (kind == OpKind::fold_heads && sizes.batch == 1);
}

}  // namespace shardplan
