// The training step of one rank: micro-batches, reduction, clipping, update.
#pragma once

#include <memory>
#include <vector>

#include "engine/loss_scaler.h"
#include "engine/network.h"
#include "engine/offload/host_gradients.h"
#include "engine/optimizer.h"

namespace shardplan::validator {

struct TrainingOptions {
  int stage = 0;  ///< ZeRO's
  DType dtype = DType::bf16;
  std::int64_t accumulation = 1;
  OptimizerOptions optimizer;
  Schedule schedule;
  LossScaling loss_scaling;  ///< fp16 only
  Offload offload;
  Pipeline pipeline;  ///< of more than one stage: ZeRO's stages 0 and 1, without offload
  std::uint32_t seed = 0;
};

/// Where a rank's micro-batches come from.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Batch next(std::int64_t step, std::int64_t micro_batch) = 0;
};

struct StepResult {
  double loss = 0;           ///< mean over the tokens of all ranks and micro-batches
  double gradient_norm = 0;  ///< before clipping, without the loss scale
  double learning_rate = 0;
  double loss_scale = 1;
  double dropped = 0;       ///< copies of rows that experts had no room for, on all ranks
  double idle_experts = 0;  ///< of a layer, in the mean: without a row of this rank's
  bool skipped = false;     ///< the gradients overflowed: nothing was updated
  double seconds = 0;
};

/// How far a run has come, beside its parameters and states. Samples and random bits are numbered
/// by steps and updates, and have no state of their own.
struct TrainingState {
  std::int64_t steps = 0, updates = 0;
  LossScaler::State scaler;
  std::optional<PendingUpdate> pending;  ///< of runs with delayed updates
};

class Trainer {
 public:
  /// Allocates everything that is kept for the run; the parameters have no values yet.
  Trainer(Runtime runtime, std::unique_ptr<Network> network, const TrainingOptions& options);

  const Network& network() const { return *network_; }
  const Sharding& sharding() const { return sharding_; }
  Runtime& runtime() { return runtime_; }
  Weights& weights() { return weights_; }
  std::uint32_t seed() const { return options_.seed; }
  const Gradients& gradients() const { return gradients_; }

  /// Random parameters. Whoever writes others into weights() calls begin() afterwards.
  void initialise();
  void begin();

  // ---- a run that is saved, and goes on
  TrainingState state() const { return {steps_, updates_, scaler_.state(), optimizer_->pending()}; }
  UnitStates states(int unit) const { return optimizer_->states(unit); }
  /// Null: states() has them.
  StateStore* host_states() { return optimizer_->host_states(); }
  /// Of what state().pending says: on the host.
  Tensor pending_gradient(int unit) const { return optimizer_->pending_gradient(unit); }
  /// Makes updates of steps so far that are still to be made, but for delayed ones, and waits for
  /// everything.
  void settle();
  /// Goes on from there, once weights().owned() and states have their values, in place of
  /// initialise().
  void restore(const TrainingState& state);
  /// [1] on the device, which nobody reads between steps.
  Tensor scalar() const { return norm_; }

  /// One optimizer step. Throws Diverged when the loss is not finite and no loss scale is to blame.
  StepResult step(BatchSource& batches);
  /// Makes updates that are still to be made; afterwards weights() are those of the last step.
  void finish();
  /// The step's micro-batches only: owned gradients and the loss, without an update.
  double gradients_of(BatchSource& batches);

 private:
  std::unique_ptr<HostGradients> make_sink();
  std::unique_ptr<Optimizer> make_optimizer();
  void accumulate(BatchSource& batches);
  void exchange(const Turn& turn);
  void run(const Pass& pass, BatchSource& batches);
  void reduce_loss();  ///< to the sum over ranks, on all stages; and with it what was dropped
  double mean_loss();  ///< of the reduced loss; waits for it

  Runtime runtime_;
  std::unique_ptr<Network> network_;
  TrainingOptions options_;
  std::vector<Turn> schedule_;  ///< of this stage
  Sharding sharding_;
  Tensor loss_, norm_;  ///< [1], on the device
  Weights weights_;
  std::unique_ptr<HostGradients> sink_;  ///< of runs that keep states on the host
  Gradients gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  LossScaler scaler_;
  std::int64_t steps_ = 0, updates_ = 0;
  Event computed_ = 0;
};

}  // namespace shardplan::validator
