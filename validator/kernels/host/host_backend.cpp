#include "kernels/host/host_backend.h"

#include <Eigen/Core>

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "base/format.h"
#include "device/errors.h"
#include "kernels/host/kernels.h"
#include "kernels/host/late_copies.h"
#include "memory/arena.h"

namespace shardplan::validator {
namespace {

using Clock = std::chrono::steady_clock;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

std::int64_t machine_memory() {
  return checked_mul(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGE_SIZE));
}

class HostBackend final : public Backend {
 public:
  HostBackend(std::int64_t capacity, CopyTime copies)
      : capacity_(capacity > 0 ? capacity : machine_memory()) {
    if (copies == CopyTime::late) late_.emplace();
  }

  DeviceInfo info() const override {
    return {"host",
            capacity_,
            {{"eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                                   EIGEN_MINOR_VERSION)}}};
  }
  void attend() override {}
  std::int64_t available_bytes() const override { return capacity_ - used_; }
  std::int64_t used_bytes() const override { return used_; }
  std::vector<Overhead> overheads() const override { return {}; }
  std::uintptr_t allocate(std::int64_t bytes) override {
    void* block = nullptr;
    if (bytes <= available_bytes())
      block = std::aligned_alloc(static_cast<std::size_t>(kAlignment),
                                 static_cast<std::size_t>(round_up(bytes, kAlignment)));
    if (block == nullptr)
      throw DeviceError(fmt::format("the host cannot allocate {}", format_bytes(bytes)));
    blocks_.emplace_back(block);
    used_ += bytes;
    return reinterpret_cast<std::uintptr_t>(block);
  }
  std::int64_t workspace_bytes(const StepShapes&) const override { return 0; }
  void use_workspace(const Tensor&) override {}

  Event new_event() override {
    events_.push_back(Clock::now());
    return static_cast<Event>(events_.size()) - 1;
  }
  void record(Event event, Stream stream) override {
    at(event) = Clock::now();
    if (late_) late_->record(event, stream);
  }
  void wait(Stream, Event event) override { await(event); }
  double seconds_between(Event first, Event second) override {
    return std::chrono::duration<double>(at(second) - at(first)).count();
  }
  void await(Event event) override {
    if (late_) late_->settle(event);
  }
  void synchronize() override {
    if (late_) late_->settle_all();
  }

  /// All memory is fit for its copies; there is no more of it than the device has.
  void pin(std::span<std::byte> memory) override {
    const auto bytes = static_cast<std::int64_t>(memory.size());
    if (bytes > capacity_)
      throw DeviceError(fmt::format("the host does not pin {} of its {}", format_bytes(bytes),
                                    format_bytes(capacity_)));
  }
  void unpin(std::span<std::byte>) noexcept override {}
  void fetch(const Tensor& to, const Tensor& from) override {
    late_ ? late_->add(Stream::to_host, to, from) : copy(to, from);
  }
  void send(const Tensor& to, const Tensor& from) override {
    late_ ? late_->add(Stream::to_device, to, from) : copy(to, from);
  }

  void upload(const Tensor& to, std::span<const std::byte> from) override {
    assert(static_cast<std::int64_t>(from.size()) == to.bytes());
    std::memcpy(to.data(), from.data(), from.size());
  }
  void download(std::span<std::byte> to, const Tensor& from) override {
    assert(static_cast<std::int64_t>(to.size()) == from.bytes());
    std::memcpy(to.data(), from.data(), to.size());
  }
  void copy(const Tensor& to, const Tensor& from) override {
    std::memmove(to.data(), from.data(), static_cast<std::size_t>(from.bytes()));
  }
  void zero(const Tensor& x) override {
    std::memset(x.data(), 0, static_cast<std::size_t>(x.bytes()));
  }
  void fill(const Tensor& x, float value) override { host::fill(x, value); }
  void fill_normal(const Tensor& x, float stddev, std::uint32_t seed,
                   std::int64_t first_element) override {
    host::fill_normal(x, stddev, seed, first_element);
  }
  void cast(const Tensor& to, const Tensor& from) override { host::cast(to, from); }
  void add(const Tensor& to, const Tensor& x) override { host::add(to, x); }

  void linear_forward(const Tensor& y, const Tensor& x, const Tensor& w,
                      const Tensor& bias) override {
    host::linear_forward(y, x, w, bias);
  }
  void linear_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& w) override {
    host::linear_backward_input(dx, dy, w);
  }
  void linear_backward_weight(const Tensor& dw, const Tensor& dy, const Tensor& x,
                              bool accumulate) override {
    host::linear_backward_weight(dw, dy, x, accumulate);
  }
  void linear_backward_bias(const Tensor& db, const Tensor& dy, bool accumulate) override {
    host::linear_backward_bias(db, dy, accumulate);
  }
  void multiply_columns(const ColumnProduct& o) override { host::multiply_columns(o); }
  void widen(const Tensor& to, const Nf4Matrix& from) override { host::widen_nf4(to, from); }
  void quantize(const Nf4Matrix& to, const Tensor& from) override { host::quantize_nf4(to, from); }
  void cast_fp8(const Fp8Cast& o) override { host::cast_fp8(o); }
  void find_magnitudes(const Fp8Magnitudes& o) override { host::find_magnitudes(o); }
  void join_scales(const Fp8JointScales& o) override { host::join_scales(o); }
  void multiply_fp8(const Fp8Product& o) override { host::multiply_fp8(o); }
  void norm_forward(const NormForward& o) override { host::norm_forward(o); }
  void norm_backward(const NormBackward& o) override { host::norm_backward(o); }
  void head_norm_forward(const HeadNormForward& o) override { host::head_norm_forward(o); }
  void head_norm_backward(const HeadNormBackward& o) override { host::head_norm_backward(o); }
  void rotary(const Tensor& qkv, const Tensor& table, const Heads& heads, bool inverse) override {
    host::rotary(qkv, table, heads, inverse);
  }
  void attention_forward(const AttentionForward& o) override { host::attention_forward(o); }
  void attention_backward(const AttentionBackward& o) override { host::attention_backward(o); }
  void merge_attention(const AttentionMerge& o) override { host::merge_attention(o); }
  void copy_columns(const ColumnCopy& o) override { host::copy_columns(o); }
  void activation_forward(Activation kind, const Tensor& y, const Tensor& x) override {
    host::activation_forward(kind, y, x);
  }
  void activation_backward(Activation kind, const Tensor& x, const Tensor& dy) override {
    host::activation_backward(kind, x, dy);
  }
  void embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                         const Tensor& positions, const RowPlaces& places) override {
    host::embedding_forward(y, tokens, table, positions, places);
  }
  void embedding_backward(const Tensor& dtable, const Tensor& dpositions, const Tensor& dy,
                          const Tensor& tokens, const RowPlaces& places) override {
    host::embedding_backward(dtable, dpositions, dy, tokens, places);
  }
  void cross_entropy(const CrossEntropy& o) override { host::cross_entropy(o); }
  void loss_parts(const LossParts& o) override { host::loss_parts(o); }
  void joined_cross_entropy(const JoinedCrossEntropy& o) override { host::joined_cross_entropy(o); }
  void route_forward(const RouteForward& o) override { host::route_forward(o); }
  void route_backward(const RouteBackward& o) override { host::route_backward(o); }
  void place_rows(const PlaceRows& o) override { host::place_rows(o); }
  void combine_rows(const CombineRows& o) override { host::combine_rows(o); }
  void combine_backward(const CombineBackward& o) override { host::combine_backward(o); }
  void balance_loss(const Tensor& loss, const Tensor& balance, float scale) override {
    host::balance_loss(loss, balance, scale);
  }
  void sum(const Tensor& out, const Tensor& x, bool accumulate) override {
    host::sum(out, x, accumulate);
  }
  void squared_norm(const Tensor& out, const Tensor& x, bool accumulate) override {
    host::squared_norm(out, x, accumulate);
  }
  void adamw(const AdamW& o) override { host::adamw(o); }

 private:
  Clock::time_point& at(Event event) { return events_[static_cast<std::size_t>(event)]; }

  std::int64_t capacity_;
  std::int64_t used_ = 0;
  std::vector<std::unique_ptr<void, Free>> blocks_;
  std::vector<Clock::time_point> events_;
  std::optional<host::LateCopies> late_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(std::int64_t capacity_bytes, CopyTime copies) {
  return std::make_unique<HostBackend>(capacity_bytes, copies);
}

}  // namespace shardplan::validator
