// The operands of the operations that have many. Empty tensors are absent operands.
#pragma once

#include <cstdint>

#include "memory/tensor.h"

namespace shardplan::validator {

enum class NormKind : std::uint8_t { layer, rms };
enum class Activation : std::uint8_t {
  swiglu,     ///< silu(gate) · up, of [rows, 2F] packed gate first
  gelu_tanh,  ///< GPT-2's
  relu,
};

/// out = norm(x), or with a branch: sum = x + branch, out = norm(sum).
struct NormForward {
  NormKind kind = NormKind::rms;
  float epsilon = 1e-5F;
  Tensor out;     ///< [rows, width]
  Tensor mean;    ///< [rows] fp32; layer norm only
  Tensor rstd;    ///< [rows] fp32
  Tensor sum;     ///< [rows, width], written if there is a branch; may be x itself
  Tensor x;       ///< [rows, width]
  Tensor branch;  ///< [rows, width] or absent
  Tensor weight;  ///< [width]
  Tensor bias;    ///< [width]; layer norm only
};

struct NormBackward {
  NormKind kind = NormKind::rms;
  Tensor dx;                   ///< [rows, width]
  bool accumulate_dx = false;  ///< dx += (the residual's gradient is there already), or dx =
  Tensor dweight, dbias;       ///< [width], or absent; dbias for layer norm only
  bool accumulate_weights = false;
  Tensor dout;        ///< [rows, width]; never dx itself
  Tensor x;           ///< [rows, width]: what was normalised, the sum if there was a branch
  Tensor mean, rstd;  ///< [rows] fp32
  Tensor weight;      ///< [width]
};

/// Queries, keys and values packed in one row: [rows, (query_heads + 2·key_value_heads)·head_dim],
/// rows = batch · sequence. Query head h attends to key-value head h / (query_heads /
/// key_value_heads).
struct Heads {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t query_heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t rows() const { return batch * sequence; }
  std::int64_t query_width() const { return query_heads * head_dim; }
  std::int64_t packed_width() const { return (query_heads + 2 * key_value_heads) * head_dim; }
};

/// Where the rows of a micro-batch are in their sequences: a rank that shares sequences with others
/// has one run of positions or two of each.
struct RowPlaces {
  std::int64_t sequence = 0;  ///< rows of a sequence
  std::int64_t first = 0;     ///< position of the first one
  std::int64_t turn = 0;      ///< the second run begins with this row of a sequence
  std::int64_t gap = 0;       ///< positions between the runs
  constexpr std::int64_t of(std::int64_t row) const {
    const std::int64_t i = row % sequence;
    return first + i + (i < turn ? 0 : gap);
  }
};

/// RMS norm over each head of q and k (Qwen 3), v copied: what rotary and attention then read.
struct HeadNormForward {
  Heads heads;
  float epsilon = 1e-6F;
  Tensor out;                 ///< [rows, packed_width]; never qkv itself
  Tensor rstd;                ///< [rows, query_heads + key_value_heads] fp32
  Tensor qkv;                 ///< [rows, packed_width]
  Tensor q_weight, k_weight;  ///< [head_dim]
};

struct HeadNormBackward {
  Heads heads;
  Tensor dqkv;                  ///< [rows, packed_width], in place: of the outputs to of the inputs
  Tensor dq_weight, dk_weight;  ///< [head_dim], or absent
  bool accumulate_weights = false;
  Tensor qkv;   ///< [rows, packed_width]: the inputs
  Tensor rstd;  ///< [rows, query_heads + key_value_heads] fp32
  Tensor q_weight, k_weight;
};

/// Rows of each sequence: `count` from `first` on.
struct Span {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Keys and values of other rows of the same sequences: each of `queries` sees all of `keys`.
struct OtherKeys {
  Tensor keys_values;  ///< [rows, 2 · key_value_heads · head_dim]; empty: the queries' own, causal
  Span queries, keys;
};

/// Softmax attention, scores scaled by 1/√head_dim, without an s² matrix in memory: causal, or of
/// some queries and other keys, where only those queries' rows of the results are written.
struct AttentionForward {
  Heads heads;
  Tensor out;  ///< [rows, query_width]
  Tensor lse;  ///< [batch, query_heads, sequence] fp32: log Σ exp(score) of each query
  Tensor qkv;  ///< [rows, packed_width]
  OtherKeys others;
};

/// With other keys, `out` and `lse` are those over all keys that a query sees, and the rows that
/// are written are those of the queries, and of the keys in the columns of keys and values.
struct AttentionBackward {
  Heads heads;
  Tensor dqkv;  ///< [rows, packed_width]; never qkv itself
  Tensor dout;  ///< [rows, query_width]
  Tensor out, lse, qkv;
  OtherKeys others;
};

/// Puts together what some queries' attention over two sets of keys gave, each normalised by
/// itself: with l = log(exp(lse) + exp(part_lse)), sum = sum · exp(lse − l) + part · exp(part_lse −
/// l) and lse = l.
struct AttentionMerge {
  Heads heads;
  Tensor sum;       ///< [rows, query_width] fp32
  Tensor lse;       ///< [batch, query_heads, sequence] fp32
  Tensor part;      ///< [rows, query_width]
  Tensor part_lse;  ///< [batch, query_heads, sequence] fp32
  Span queries;     ///< the rows that are merged
};

/// to[:, to_column + i] (+)= from[:, from_column + i] for i < columns and some rows of each
/// sequence. The matrices may have different element types.
struct ColumnCopy {
  Tensor to;  ///< [batch · sequence, ...]
  std::int64_t to_column = 0;
  Tensor from;  ///< [batch · sequence, ...]
  std::int64_t from_column = 0;
  std::int64_t columns = 0;
  std::int64_t sequence = 0;
  Span rows;
  bool accumulate = false;
};

/// Neighbouring columns of a matrix.
struct Columns {
  Tensor of;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// c (+)= scale · a b, each of them some columns of a matrix, a and b as they are or transposed.
struct ColumnProduct {
  Columns c, a, b;
  bool a_transposed = false, b_transposed = false;
  float scale = 1;
  bool accumulate = false;
  /// So many products, each of the next rows of all three, of which it has an equal share.
  std::int64_t bands = 1;
  bool counted = false;  ///< of the rows that an expert was given: others the next time
};

/// Softmax and cross-entropy of rows of logits, whose place their gradient takes.
struct CrossEntropy {
  Tensor logits;   ///< [rows, padded vocabulary]; becomes gradient_scale · (softmax − one-hot)
  Tensor losses;   ///< [rows] fp32; 0 where the target is negative
  Tensor targets;  ///< [rows] int32; negative: not counted, gradient 0
  std::int64_t vocabulary = 0;  ///< columns from here on are padding: no probability, gradient 0
  float gradient_scale = 1;
};

/// What a rank tells the others of each row of its columns of the logits, where ranks divide the
/// vocabulary: the largest logit, the sum of exp(logit − largest), and the target's logit, 0 if it
/// is not among these columns. Without columns the largest is −∞ and the sum 0.
struct LossParts {
  static constexpr std::int64_t kNumbers = 3;
  Tensor parts;                 ///< [rows, kNumbers] fp32
  Tensor logits;                ///< [rows, padded columns]
  Tensor targets;               ///< [rows] int32, tokens of the whole vocabulary
  std::int64_t first = 0;       ///< the token of the first column
  std::int64_t vocabulary = 0;  ///< columns from here on are padding
};

/// Softmax and cross-entropy of such columns, once all ranks' parts are there. They are put
/// together in rank order, so that every rank has the same losses.
struct JoinedCrossEntropy {
  CrossEntropy loss;       ///< of these columns; targets of the whole vocabulary
  Tensor all;              ///< [ranks · rows, LossParts::kNumbers], rank by rank
  std::int64_t first = 0;  ///< the token of the first column
};

/// What the gradients of a step have in common before the optimizer sees them.
struct Clipping {
  Tensor squared_norm;      ///< [1] fp32, on the device: of all gradients, as scaled
  float inverse_scale = 1;  ///< 1 / loss scale
  float largest_norm = 0;   ///< 0: gradients are not clipped
};

/// AdamW as torch.optim.AdamW: decoupled decay, bias correction, on a flat range of one unit.
/// g = inverse_scale · gradient · min(1, largest_norm / (inverse_scale·√squared_norm + 1e-6)).
/// Nothing at all is written when squared_norm is not finite (an overflow skips the step).
struct AdamW {
  Tensor parameter;  ///< [n] fp32, bf16 or fp16: the rounded copy if there is a master
  Tensor master;     ///< [n] fp32, or absent: then the parameter itself is updated
  Tensor gradient;   ///< [n] in the parameter's type
  Tensor first_moment, second_moment;  ///< [n] fp32 or bf16
  Clipping clipping;
  float learning_rate = 0, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, weight_decay = 0;
  std::int64_t step = 1;  ///< counted from 1, skipped steps not counted
  /// Updates and moments that have no fp32 home are rounded stochastically, with random bits that
  /// depend on the seed, the step and the element's index in the model, not on who computes it
  /// (random.h).
  std::uint32_t seed = 0;
  std::int64_t first_element = 0;  ///< index in the model of element 0
};

}  // namespace shardplan::validator
