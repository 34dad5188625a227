// The host back end's operations, by file: what device/backend.h says of each holds here.
#pragma once

#include "device/expert_operands.h"
#include "device/fp8.h"
#include "device/nf4.h"
#include "device/operands.h"

namespace shardplan::validator::host {

// linear.cpp
void linear_forward(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias);
void linear_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& w);
void linear_backward_weight(const Tensor& dw, const Tensor& dy, const Tensor& x, bool accumulate);
void linear_backward_bias(const Tensor& db, const Tensor& dy, bool accumulate);
void multiply_columns(const ColumnProduct& o);

// nf4.cpp
void widen_nf4(const Tensor& to, const Nf4Matrix& from);

// quantize.cpp
void quantize_nf4(const Nf4Matrix& to, const Tensor& from);

// fp8.cpp
void cast_fp8(const Fp8Cast& o);
void find_magnitudes(const Fp8Magnitudes& o);
void join_scales(const Fp8JointScales& o);
void multiply_fp8(const Fp8Product& o);

// norms.cpp
void norm_forward(const NormForward& o);
void norm_backward(const NormBackward& o);

// head_norms.cpp
void head_norm_forward(const HeadNormForward& o);
void head_norm_backward(const HeadNormBackward& o);

// attention.cpp
void rotary(const Tensor& qkv, const Tensor& table, const Heads& heads, bool inverse);
void attention_forward(const AttentionForward& o);
void attention_backward(const AttentionBackward& o);

// attention_parts.cpp
void merge_attention(const AttentionMerge& o);
void copy_columns(const ColumnCopy& o);

// activations.cpp
void activation_forward(Activation kind, const Tensor& y, const Tensor& x);
void activation_backward(Activation kind, const Tensor& x, const Tensor& dy);

// embedding.cpp
void embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                       const Tensor& positions, const RowPlaces& places);
void embedding_backward(const Tensor& dtable, const Tensor& dpositions, const Tensor& dy,
                        const Tensor& tokens, const RowPlaces& places);

// cross_entropy.cpp
void cross_entropy(const CrossEntropy& o);

// divided_loss.cpp
void loss_parts(const LossParts& o);
void joined_cross_entropy(const JoinedCrossEntropy& o);

// experts.cpp
void route_forward(const RouteForward& o);
void route_backward(const RouteBackward& o);
void place_rows(const PlaceRows& o);
void combine_rows(const CombineRows& o);
void combine_backward(const CombineBackward& o);
void balance_loss(const Tensor& loss, const Tensor& balance, float scale);

// elementwise.cpp
void fill(const Tensor& x, float value);
void fill_normal(const Tensor& x, float stddev, std::uint32_t seed, std::int64_t first_element);
void cast(const Tensor& to, const Tensor& from);
void add(const Tensor& to, const Tensor& x);
void sum(const Tensor& out, const Tensor& x, bool accumulate);
void squared_norm(const Tensor& out, const Tensor& x, bool accumulate);

// adamw.cpp
void adamw(const AdamW& o);

}  // namespace shardplan::validator::host
