// AdamW on the host's cores over what this rank owns, with masters and moments in the host's memory
// or in a file.
#pragma once

#include <optional>
#include <vector>

#include "engine/offload/host_gradients.h"
#include "engine/offload/state_store.h"
#include "engine/optimizer.h"

namespace shardplan::validator {

class HostOptimizer final : public Optimizer {
 public:
  HostOptimizer(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                Weights& weights, HostGradients& gradients, const OptimizerOptions& options,
                const Offload& offload);

  void begin(Weights& weights) override;
  void measure(Weights& weights, const Gradients& gradients, const Tensor& norm) override;
  void update(Weights& weights, const Gradients& gradients, const Tensor& norm,
              double inverse_scale, const Rate& rate, std::int64_t step) override;
  void finish(Weights& weights) override;
  StateStore* host_states() override { return states_.get(); }
  void settle(Weights& weights) override;
  std::optional<PendingUpdate> pending() const override;
  Tensor pending_gradient(int unit) const override { return gradients_.of(gradients_.set(), unit); }
  void restored(Weights& weights, const std::optional<PendingUpdate>& pending) override;

 private:
  struct Home {
    /// What is updated where there is no master and the parameters themselves are on the device.
    Tensor parameter;
    Event sent = 0;  ///< `parameter` has been read by the last copy
  };
  /// Rounded parameters on their way to the device.
  struct Staging {
    Tensor tensor;
    Event sent = 0;
    bool used = false;
  };
  /// A step's update, of which some units may be done.
  struct Pending {
    PendingUpdate what;
    AdamW common;
    int gradients = 0;               ///< their set
    std::vector<std::uint8_t> left;  ///< by unit: 1: not done
  };

  void allocate(const Weights& weights);
  void begin_update(const PendingUpdate& what);
  void fetch_owned(const Weights& weights, int unit, const Tensor& to);
  void settle_files(const Weights& weights);
  bool is_left(int unit) const { return pending_ && at(pending_->left, unit) != 0; }
  void update_unit(Weights& weights, int unit);
  void update_all(Weights& weights);
  /// Before a unit's parameters are written: until nothing reads them any more.
  void wait_for_readers(const Weights& weights, int unit);
  /// One bucket, and its way to the device.
  void update_bucket(AdamW& o, const Tensor& home, const Tensor& on_device);

  const std::vector<Unit>& units_;
  HostGradients& gradients_;
  bool delayed_;
  std::unique_ptr<StateStore> states_;
  std::vector<Home> homes_;                         ///< by unit
  std::vector<std::vector<ElementRange>> counted_;  ///< by unit, of what is owned
  std::vector<Staging> staging_;
  std::size_t next_staging_ = 0;
  float norm_ = 0;  ///< the squared norm of the pending update
  std::optional<Pending> pending_;
  Event copied_ = 0;
};

}  // namespace shardplan::validator
