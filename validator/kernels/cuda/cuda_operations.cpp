// The operations of the CUDA back end: each is one family of kernels, or a library's.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launchers.h"

namespace shardplan::validator::cuda {

void CudaBackend::fill(const Tensor& x, float value) {
  cuda::fill(launch_, x, value);
}

void CudaBackend::fill_normal(const Tensor& x, float stddev, std::uint32_t seed,
                              std::int64_t first_element) {
  cuda::fill_normal(launch_, x, stddev, seed, first_element);
}

void CudaBackend::cast(const Tensor& to, const Tensor& from) {
  cuda::cast(launch_, to, from);
}

void CudaBackend::add(const Tensor& to, const Tensor& x) {
  cuda::add(launch_, to, x);
}

void CudaBackend::linear_forward(const Tensor& y, const Tensor& x, const Tensor& w,
                                 const Tensor& bias) {
  linear_->forward(launch_, y, x, w, bias);
}

void CudaBackend::linear_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& w) {
  linear_->backward_input(launch_, dx, dy, w);
}

void CudaBackend::linear_backward_weight(const Tensor& dw, const Tensor& dy, const Tensor& x,
                                         bool accumulate) {
  linear_->backward_weight(launch_, dw, dy, x, accumulate);
}

void CudaBackend::linear_backward_bias(const Tensor& db, const Tensor& dy, bool accumulate) {
  cuda::bias_backward(launch_, db, dy, accumulate);
}

void CudaBackend::multiply_columns(const ColumnProduct& o) {
  linear_->multiply_columns(launch_, o);
}

void CudaBackend::widen(const Tensor& to, const Nf4Matrix& from) {
  cuda::widen_nf4(launch_, to, from);
}

void CudaBackend::quantize(const Nf4Matrix& to, const Tensor& from) {
  cuda::quantize_nf4(launch_, to, from);
}

void CudaBackend::cast_fp8(const Fp8Cast& o) {
  cuda::cast_fp8(launch_, o);
}

void CudaBackend::find_magnitudes(const Fp8Magnitudes& o) {
  cuda::find_magnitudes(launch_, o);
}

void CudaBackend::join_scales(const Fp8JointScales& o) {
  cuda::join_scales(launch_, o);
}

void CudaBackend::multiply_fp8(const Fp8Product& o) {
  fp8_->multiply(launch_, o);
}

void CudaBackend::norm_forward(const NormForward& o) {
  cuda::norm_forward(launch_, o);
}

void CudaBackend::norm_backward(const NormBackward& o) {
  cuda::norm_backward(launch_, o);
}

void CudaBackend::head_norm_forward(const HeadNormForward& o) {
  cuda::head_norm_forward(launch_, o);
}

void CudaBackend::head_norm_backward(const HeadNormBackward& o) {
  cuda::head_norm_backward(launch_, o);
}

void CudaBackend::rotary(const Tensor& qkv, const Tensor& table, const Heads& heads, bool inverse) {
  cuda::rotary(launch_, qkv, table, heads, inverse);
}

void CudaBackend::attention_forward(const AttentionForward& o) {
  attention_for(o.qkv.dtype, o.heads, o.others).forward(launch_, o);
}

void CudaBackend::attention_backward(const AttentionBackward& o) {
  attention_for(o.qkv.dtype, o.heads, o.others).backward(launch_, o);
}

void CudaBackend::merge_attention(const AttentionMerge& o) {
  cuda::merge_attention(launch_, o);
}

void CudaBackend::copy_columns(const ColumnCopy& o) {
  cuda::copy_columns(launch_, o);
}

void CudaBackend::activation_forward(Activation kind, const Tensor& y, const Tensor& x) {
  cuda::activation_forward(launch_, kind, y, x);
}

void CudaBackend::activation_backward(Activation kind, const Tensor& x, const Tensor& dy) {
  cuda::activation_backward(launch_, kind, x, dy);
}

void CudaBackend::embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                                    const Tensor& positions, const RowPlaces& places) {
  cuda::embedding_forward(launch_, y, tokens, table, positions, places);
}

void CudaBackend::embedding_backward(const Tensor& dtable, const Tensor& dpositions,
                                     const Tensor& dy, const Tensor& tokens,
                                     const RowPlaces& places) {
  cuda::embedding_backward(launch_, dtable, dpositions, dy, tokens, places);
}

void CudaBackend::cross_entropy(const CrossEntropy& o) {
  cuda::cross_entropy(launch_, o);
}

void CudaBackend::loss_parts(const LossParts& o) {
  cuda::loss_parts(launch_, o);
}

void CudaBackend::joined_cross_entropy(const JoinedCrossEntropy& o) {
  cuda::joined_cross_entropy(launch_, o);
}

void CudaBackend::route_forward(const RouteForward& o) {
  cuda::route_forward(launch_, o);
}

void CudaBackend::route_backward(const RouteBackward& o) {
  cuda::route_backward(launch_, o);
}

void CudaBackend::place_rows(const PlaceRows& o) {
  cuda::place_rows(launch_, o);
}

void CudaBackend::combine_rows(const CombineRows& o) {
  cuda::combine_rows(launch_, o);
}

void CudaBackend::combine_backward(const CombineBackward& o) {
  cuda::combine_backward(launch_, o);
}

void CudaBackend::balance_loss(const Tensor& loss, const Tensor& balance, float scale) {
  cuda::balance_loss(launch_, loss, balance, scale);
}

void CudaBackend::sum(const Tensor& out, const Tensor& x, bool accumulate) {
  cuda::sum(launch_, out, x, accumulate);
}

void CudaBackend::squared_norm(const Tensor& out, const Tensor& x, bool accumulate) {
  cuda::squared_norm(launch_, out, x, accumulate);
}

void CudaBackend::adamw(const AdamW& o) {
  cuda::adamw(launch_, o);
}

}  // namespace shardplan::validator::cuda
