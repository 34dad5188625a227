// Every kernel of the CUDA back end, as a function of its operands (device/operands.h and
// device/backend.h say what each computes). One family a file. The *_workspace functions give the
// bytes of scratch that a family needs; they depend on shapes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/backend.h"
#include "kernels/cuda/launch.h"

namespace shardplan::validator::cuda {

// fill.cu
void fill(const Launch& launch, const Tensor& x, float value);
void fill_normal(const Launch& launch, const Tensor& x, float stddev, std::uint32_t seed,
                 std::int64_t first_element);
void cast(const Launch& launch, const Tensor& to, const Tensor& from);
void add(const Launch& launch, const Tensor& to, const Tensor& x);

// nf4.cu
void widen_nf4(const Launch& launch, const Tensor& to, const Nf4Matrix& from);

// quantize.cu
void quantize_nf4(const Launch& launch, const Nf4Matrix& to, const Tensor& from);

// fp8.cu; scratch of 4 KB
void cast_fp8(const Launch& launch, const Fp8Cast& o);
void find_magnitudes(const Launch& launch, const Fp8Magnitudes& o);
void join_scales(const Launch& launch, const Fp8JointScales& o);

// norm.cu
void norm_forward(const Launch& launch, const NormForward& o);
void norm_backward(const Launch& launch, const NormBackward& o);
std::int64_t norm_workspace(std::int64_t width);

// head_norm.cu
void head_norm_forward(const Launch& launch, const HeadNormForward& o);
void head_norm_backward(const Launch& launch, const HeadNormBackward& o);
std::int64_t head_norm_workspace(std::int64_t head_dim);

// rotary.cu
void rotary(const Launch& launch, const Tensor& qkv, const Tensor& table, const Heads& heads,
            bool inverse);

// attention_parts.cu
void merge_attention(const Launch& launch, const AttentionMerge& o);
void copy_columns(const Launch& launch, const ColumnCopy& o);

// activation.cu
void activation_forward(const Launch& launch, Activation kind, const Tensor& y, const Tensor& x);
void activation_backward(const Launch& launch, Activation kind, const Tensor& x, const Tensor& dy);

// bias.cu
void bias_backward(const Launch& launch, const Tensor& db, const Tensor& dy, bool accumulate);
std::int64_t bias_workspace(std::int64_t width);

// embedding.cu
void embedding_forward(const Launch& launch, const Tensor& y, const Tensor& tokens,
                       const Tensor& table, const Tensor& positions, const RowPlaces& places);

// embedding_backward.cu
void embedding_backward(const Launch& launch, const Tensor& dtable, const Tensor& dpositions,
                        const Tensor& dy, const Tensor& tokens, const RowPlaces& places);
std::int64_t embedding_workspace(std::int64_t rows, std::int64_t width);

// cross_entropy.cu
void cross_entropy(const Launch& launch, const CrossEntropy& o);

// divided_loss.cu
void loss_parts(const Launch& launch, const LossParts& o);
void joined_cross_entropy(const Launch& launch, const JoinedCrossEntropy& o);

// router.cu; scratch of at most 9 MB, less than matrix products have
void route_forward(const Launch& launch, const RouteForward& o);
void route_backward(const Launch& launch, const RouteBackward& o);
void balance_loss(const Launch& launch, const Tensor& loss, const Tensor& balance, float scale);

// expert_rows.cu
void place_rows(const Launch& launch, const PlaceRows& o);
void combine_rows(const Launch& launch, const CombineRows& o);
void combine_backward(const Launch& launch, const CombineBackward& o);

// rank_sums.cu
inline constexpr std::size_t kMostRanksOfAGpu = 32;
/// to = the sum of `parts` in their order; one of them may be `to`.
void rank_sum(cudaStream_t stream, const Tensor& to, std::span<const Tensor> parts);

// sums.cu
void sum(const Launch& launch, const Tensor& out, const Tensor& x, bool accumulate);
void squared_norm(const Launch& launch, const Tensor& out, const Tensor& x, bool accumulate);
std::int64_t sums_workspace();

// adamw.cu
void adamw(const Launch& launch, const AdamW& o);

}  // namespace shardplan::validator::cuda
