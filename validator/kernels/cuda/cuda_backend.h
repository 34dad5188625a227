// One GPU as the training engine's device.
//
// Memory comes from one cudaMalloc that the arena divides (memory/arena.h): the run's peak is known
// before it starts, and nothing is allocated, and so nothing fails or fragments, in between.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "device/backend.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/fp8_products.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/linear.h"

namespace shardplan::validator::cuda {

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(int device);
  ~CudaBackend() override;

  cudaStream_t stream(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  const Launch& launch() const { return launch_; }
  /// In the order in which operations choose among them.
  const std::vector<std::unique_ptr<Attention>>& attentions() const { return attentions_; }
  /// Called again and again while synchronize() and download() wait; may throw to end the wait.
  void watch(std::function<void()> watcher) { watcher_ = std::move(watcher); }

  DeviceInfo info() const override;
  void attend() override;
  std::int64_t available_bytes() const override;
  std::int64_t used_bytes() const override;
  std::vector<Overhead> overheads() const override { return overheads_; }
  std::uintptr_t allocate(std::int64_t bytes) override;
  std::int64_t workspace_bytes(const StepShapes& shapes) const override;
  void use_workspace(const Tensor& workspace) override;

  Event new_event() override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  double seconds_between(Event first, Event second) override;
  void await(Event event) override;
  void synchronize() override;

  void pin(std::span<std::byte> memory) override;
  void unpin(std::span<std::byte> memory) noexcept override;
  void fetch(const Tensor& to, const Tensor& from) override;
  void send(const Tensor& to, const Tensor& from) override;

  void upload(const Tensor& to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const Tensor& from) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void zero(const Tensor& x) override;
  void fill(const Tensor& x, float value) override;
  void fill_normal(const Tensor& x, float stddev, std::uint32_t seed,
                   std::int64_t first_element) override;
  void cast(const Tensor& to, const Tensor& from) override;
  void add(const Tensor& to, const Tensor& x) override;

  void linear_forward(const Tensor& y, const Tensor& x, const Tensor& w,
                      const Tensor& bias) override;
  void linear_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& w) override;
  void linear_backward_weight(const Tensor& dw, const Tensor& dy, const Tensor& x,
                              bool accumulate) override;
  void linear_backward_bias(const Tensor& db, const Tensor& dy, bool accumulate) override;

  void multiply_columns(const ColumnProduct& o) override;
  void widen(const Tensor& to, const Nf4Matrix& from) override;
  void quantize(const Nf4Matrix& to, const Tensor& from) override;
  void cast_fp8(const Fp8Cast& o) override;
  void find_magnitudes(const Fp8Magnitudes& o) override;
  void join_scales(const Fp8JointScales& o) override;
  void multiply_fp8(const Fp8Product& o) override;
  void norm_forward(const NormForward& o) override;
  void norm_backward(const NormBackward& o) override;
  void head_norm_forward(const HeadNormForward& o) override;
  void head_norm_backward(const HeadNormBackward& o) override;
  void rotary(const Tensor& qkv, const Tensor& table, const Heads& heads, bool inverse) override;
  void attention_forward(const AttentionForward& o) override;
  void attention_backward(const AttentionBackward& o) override;
  void merge_attention(const AttentionMerge& o) override;
  void copy_columns(const ColumnCopy& o) override;
  void activation_forward(Activation kind, const Tensor& y, const Tensor& x) override;
  void activation_backward(Activation kind, const Tensor& x, const Tensor& dy) override;
  void embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                         const Tensor& positions, const RowPlaces& places) override;
  void embedding_backward(const Tensor& dtable, const Tensor& dpositions, const Tensor& dy,
                          const Tensor& tokens, const RowPlaces& places) override;
  void cross_entropy(const CrossEntropy& o) override;
  void loss_parts(const LossParts& o) override;
  void joined_cross_entropy(const JoinedCrossEntropy& o) override;

  void route_forward(const RouteForward& o) override;
  void route_backward(const RouteBackward& o) override;
  void place_rows(const PlaceRows& o) override;
  void combine_rows(const CombineRows& o) override;
  void combine_backward(const CombineBackward& o) override;
  void balance_loss(const Tensor& loss, const Tensor& balance, float scale) override;
  void sum(const Tensor& out, const Tensor& x, bool accumulate) override;
  void squared_norm(const Tensor& out, const Tensor& x, bool accumulate) override;
  void adamw(const AdamW& o) override;

 private:
  /// The first implementation that can do it: cuDNN's, our flash kernels, the simple ones.
  Attention& attention_for(DType dtype, const Heads& heads, const OtherKeys& others) const;
  void make_stream(Stream stream, int priority);
  /// Until `query` says that what it asks about is done.
  template <typename Query, typename Block>
  void wait_until(Query&& query, Block&& block);
  void wait_for(Stream stream);

  int device_;
  std::array<cudaStream_t, kStreamCount> streams_{};  ///< by Stream
  Launch launch_;
  std::vector<Overhead> overheads_;
  std::vector<cudaEvent_t> events_;
  std::vector<void*> blocks_;
  std::unique_ptr<Linear> linear_;
  std::unique_ptr<Fp8Products> fp8_;
  std::vector<std::unique_ptr<Attention>> attentions_;
  std::function<void()> watcher_;
};

}  // namespace shardplan::validator::cuda
