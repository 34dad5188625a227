// A back end that passes everything on to another, and can time each operation on the way: where a
// step's time goes, beside the operations and bytes that it cannot do without.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/backend.h"

namespace shardplan::validator {

/// The least that an operation computes and moves: each operand read once, each result written
/// once.
struct Work {
  double flops = 0;
  double bytes = 0;
  double share_of_peak = 1;  ///< of the time that products in the model's type would take
};

struct FamilyTime {
  std::int64_t calls = 0;
  double seconds = 0;
  double light_seconds = 0;  ///< at the device's peak rates
  Work work;
};

/// Peak rates that speed is held against.
struct Rates {
  double flops = 0;      ///< of matrix products, per second
  double bandwidth = 0;  ///< bytes per second
};

class TimedBackend final : public Backend {
 public:
  TimedBackend(Backend& inner, Rates rates) : inner_(inner), rates_(rates) {}

  /// From here on operations are timed, until stop(). Timing costs a little.
  void start();
  /// Waits, and returns the time of each family of operations.
  std::map<std::string, FamilyTime> stop();

  DeviceInfo info() const override { return inner_.info(); }
  void attend() override { inner_.attend(); }
  std::int64_t available_bytes() const override { return inner_.available_bytes(); }
  std::int64_t used_bytes() const override { return inner_.used_bytes(); }
  std::vector<Overhead> overheads() const override { return inner_.overheads(); }
  std::uintptr_t allocate(std::int64_t bytes) override { return inner_.allocate(bytes); }
  std::int64_t workspace_bytes(const StepShapes& shapes) const override {
    return inner_.workspace_bytes(shapes);
  }
  void use_workspace(const Tensor& workspace) override { inner_.use_workspace(workspace); }

  Event new_event() override { return inner_.new_event(); }
  void record(Event event, Stream stream) override { inner_.record(event, stream); }
  void wait(Stream stream, Event event) override { inner_.wait(stream, event); }
  double seconds_between(Event first, Event second) override {
    return inner_.seconds_between(first, second);
  }
  void await(Event event) override { inner_.await(event); }
  void synchronize() override { inner_.synchronize(); }

  void pin(std::span<std::byte> memory) override { inner_.pin(memory); }
  void unpin(std::span<std::byte> memory) noexcept override { inner_.unpin(memory); }
  void fetch(const Tensor& to, const Tensor& from) override { inner_.fetch(to, from); }
  void send(const Tensor& to, const Tensor& from) override { inner_.send(to, from); }

  void upload(const Tensor& to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const Tensor& from) override { inner_.download(to, from); }
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
  struct Timed {
    const char* family;
    Work work;
    Event begin;
    Event end;
  };

  template <class Operation>
  void time(const char* family, Work work, Operation&& operation);
  Event next_event();

  Backend& inner_;
  Rates rates_;
  bool timing_ = false;
  std::vector<Event> events_;  ///< made once, reused by every start()
  std::size_t events_used_ = 0;
  std::vector<Timed> timed_;
};

}  // namespace shardplan::validator
