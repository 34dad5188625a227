#include "device/dry_run.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardplan::validator {
namespace {

class DryBackend final : public Backend {
 public:
  explicit DryBackend(WorkspaceRule workspace) : workspace_(std::move(workspace)) {}

  DeviceInfo info() const override { return {"dry run", available_bytes(), {}}; }
  void attend() override {}
  std::int64_t available_bytes() const override { return std::numeric_limits<std::int64_t>::max(); }
  std::int64_t used_bytes() const override { return 0; }
  std::vector<Overhead> overheads() const override { return {}; }
  std::uintptr_t allocate(std::int64_t) override { return 0; }
  std::int64_t workspace_bytes(const StepShapes& shapes) const override {
    return workspace_(shapes);
  }
  void use_workspace(const Tensor&) override {}

  Event new_event() override { return 0; }
  void record(Event, Stream) override {}
  void wait(Stream, Event) override {}
  double seconds_between(Event, Event) override { return 0; }
  void await(Event) override {}
  void synchronize() override {}

  void pin(std::span<std::byte>) override {}
  void unpin(std::span<std::byte>) noexcept override {}
  void fetch(const Tensor&, const Tensor&) override {}
  void send(const Tensor&, const Tensor&) override {}

  void upload(const Tensor&, std::span<const std::byte>) override {}
  /// Whatever is read is 0: a loss, a norm.
  void download(std::span<std::byte> to, const Tensor&) override {
    std::fill(to.begin(), to.end(), std::byte{0});
  }
  void copy(const Tensor&, const Tensor&) override {}
  void zero(const Tensor&) override {}
  void fill(const Tensor&, float) override {}
  void fill_normal(const Tensor&, float, std::uint32_t, std::int64_t) override {}
  void cast(const Tensor&, const Tensor&) override {}
  void add(const Tensor&, const Tensor&) override {}
  void linear_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {}
  void linear_backward_input(const Tensor&, const Tensor&, const Tensor&) override {}
  void linear_backward_weight(const Tensor&, const Tensor&, const Tensor&, bool) override {}
  void linear_backward_bias(const Tensor&, const Tensor&, bool) override {}
  void multiply_columns(const ColumnProduct&) override {}
  void widen(const Tensor&, const Nf4Matrix&) override {}
  void quantize(const Nf4Matrix&, const Tensor&) override {}
  void cast_fp8(const Fp8Cast&) override {}
  void find_magnitudes(const Fp8Magnitudes&) override {}
  void join_scales(const Fp8JointScales&) override {}
  void multiply_fp8(const Fp8Product&) override {}
  void norm_forward(const NormForward&) override {}
  void norm_backward(const NormBackward&) override {}
  void head_norm_forward(const HeadNormForward&) override {}
  void head_norm_backward(const HeadNormBackward&) override {}
  void rotary(const Tensor&, const Tensor&, const Heads&, bool) override {}
  void attention_forward(const AttentionForward&) override {}
  void attention_backward(const AttentionBackward&) override {}
  void merge_attention(const AttentionMerge&) override {}
  void copy_columns(const ColumnCopy&) override {}
  void activation_forward(Activation, const Tensor&, const Tensor&) override {}
  void activation_backward(Activation, const Tensor&, const Tensor&) override {}
  void embedding_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                         const RowPlaces&) override {}
  void embedding_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                          const RowPlaces&) override {}
  void cross_entropy(const CrossEntropy&) override {}
  void loss_parts(const LossParts&) override {}
  void joined_cross_entropy(const JoinedCrossEntropy&) override {}
  void route_forward(const RouteForward&) override {}
  void route_backward(const RouteBackward&) override {}
  void place_rows(const PlaceRows&) override {}
  void combine_rows(const CombineRows&) override {}
  void combine_backward(const CombineBackward&) override {}
  void balance_loss(const Tensor&, const Tensor&, float) override {}
  void sum(const Tensor&, const Tensor&, bool) override {}
  void squared_norm(const Tensor&, const Tensor&, bool) override {}
  void adamw(const AdamW&) override {}

 private:
  WorkspaceRule workspace_;
};

class DryHost final : public HostCompute {
 public:
  std::string description() const override { return "dry run"; }
  void zero(const Tensor&) override {}
  void cast(const Tensor&, const Tensor&) override {}
  void add(const Tensor&, const Tensor&) override {}
  double squared_norm(const Tensor&) override { return 0; }
  void adamw(const AdamW&) override {}
};

class DryCommunicator final : public Communicator {
 public:
  DryCommunicator(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(const Tensor&) override {}
  void reduce_scatter(const Tensor&, const Tensor&) override {}
  void all_gather(const Tensor&, const Tensor&) override {}
  void broadcast(const Tensor&, int) override {}
  void connect_all() override {}
  void all_to_all(const Tensor&, const Tensor&, std::int64_t) override {}
  void connect_neighbours() override {}
  void exchange(std::span<const Parcel>, std::span<const Parcel>) override {}
  std::unique_ptr<Communicator> group(std::span<const int> members) override {
    const auto me = std::find(members.begin(), members.end(), rank_);
    return std::make_unique<DryCommunicator>(static_cast<int>(me - members.begin()),
                                             static_cast<int>(members.size()));
  }
  void barrier() override {}
  void abort() noexcept override {}
  std::int64_t overhead_bytes() const override { return 0; }

 private:
  int rank_, size_;
};

}  // namespace

std::unique_ptr<Backend> make_dry_backend(WorkspaceRule workspace) {
  return std::make_unique<DryBackend>(std::move(workspace));
}

std::unique_ptr<HostCompute> make_dry_host() {
  return std::make_unique<DryHost>();
}

std::unique_ptr<Communicator> make_dry_communicator(int rank, int size) {
  return std::make_unique<DryCommunicator>(rank, size);
}

}  // namespace shardplan::validator
