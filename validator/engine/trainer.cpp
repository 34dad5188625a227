#include "engine/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "engine/diverged.h"
#include "engine/initialise.h"
#include "engine/offload/host_optimizer.h"

namespace shardplan::validator {
namespace {

double read_scalar(Backend& device, const Tensor& x) {
  if (x.dtype == DType::f64) {
    double value = 0;
    device.download(std::as_writable_bytes(std::span(&value, 1)), x);
    return value;
  }
  float value = 0;
  device.download(std::as_writable_bytes(std::span(&value, 1)), x);
  return value;
}

LossScaling no_scaling() {
  return {.dynamic = false, .initial = 1};
}

}  // namespace

Trainer::Trainer(Runtime runtime, std::unique_ptr<Network> network, const TrainingOptions& options)
    : runtime_(runtime),
      network_(std::move(network)),
      options_(options),
      sharding_{options.stage, runtime.ranks.size(), runtime.ranks.rank()},
      loss_(runtime.arena.allocate("loss", Category::logits_and_loss, statistic_type(options.dtype),
                                   {1})),
      norm_(runtime.arena.allocate("gradient_norm", Category::other, statistic_type(options.dtype),
                                   {1})),
      weights_(runtime_, network_->units(), sharding_, options.dtype, network_->tied(),
               options.offload.parameters),
      sink_(make_sink()),
      gradients_(runtime_, network_->units(), sharding_, options.dtype, network_->tied(),
                 sink_.get()),
      optimizer_(make_optimizer()),
      scaler_(options.dtype == DType::f16 ? options.loss_scaling : no_scaling()),
      computed_(runtime.device.new_event()) {
  const std::int64_t workspace = runtime_.device.workspace_bytes(network_->shapes());
  if (workspace > 0)
    runtime_.device.use_workspace(
        runtime_.arena.allocate("workspace", Category::workspace, DType::i8, {workspace}));
  network_->prepare(runtime_);
}

std::unique_ptr<HostGradients> Trainer::make_sink() {
  if (!options_.offload.states) return nullptr;
  const bool adds = options_.stage >= 2 && options_.accumulation > 1;
  return std::make_unique<HostGradients>(runtime_, network_->units(), sharding_, options_.dtype,
                                         options_.offload.delayed ? 2 : 1, adds);
}

std::unique_ptr<Optimizer> Trainer::make_optimizer() {
  if (sink_ == nullptr)
    return std::make_unique<DeviceOptimizer>(runtime_, network_->units(), sharding_, weights_,
                                             options_.optimizer);
  return std::make_unique<HostOptimizer>(runtime_, network_->units(), sharding_, weights_, *sink_,
                                         options_.optimizer, options_.offload.delayed);
}

void Trainer::finish() {
  optimizer_->finish(weights_);
  runtime_.device.synchronize();
}

void Trainer::initialise() {
  validator::initialise(runtime_, network_->units(), sharding_, weights_, options_.seed);
  begin();
}

void Trainer::begin() {
  optimizer_->begin(weights_);
  runtime_.device.synchronize();
  runtime_.ranks.barrier();
}

void Trainer::accumulate(BatchSource& batches) {
  const std::int64_t tokens = network_->rows() * options_.accumulation * sharding_.world;
  for (std::int64_t micro = 0; micro < options_.accumulation; ++micro) {
    const Batch batch = batches.next(steps_, micro);
    const bool first = micro == 0, last = micro + 1 == options_.accumulation;
    gradients_.begin_micro_batch(first, last);
    {
      const Arena::Scope activations(runtime_.arena);
      runtime_.arena.begin_phase(Phase::forward);
      network_->forward(
          runtime_, weights_, gradients_,
          {batch, first, static_cast<float>(scaler_.scale() / static_cast<double>(tokens))}, loss_);
      runtime_.arena.end_phase();
      runtime_.arena.begin_phase(Phase::backward);
      network_->backward(runtime_, weights_, gradients_);
      if (last) gradients_.finish();
    }
    runtime_.arena.end_phase();
  }
}

void Trainer::reduce_loss() {
  if (sharding_.world == 1) return;
  in_line(runtime_.device, computed_, [&] { runtime_.ranks.all_reduce(loss_); });
}

double Trainer::mean_loss() {
  const double tokens =
      static_cast<double>(network_->rows() * options_.accumulation * sharding_.world);
  return read_scalar(runtime_.device, loss_) / tokens;
}

double Trainer::gradients_of(BatchSource& batches) {
  accumulate(batches);
  reduce_loss();
  return mean_loss();
}

StepResult Trainer::step(BatchSource& batches) {
  const auto start = std::chrono::steady_clock::now();
  runtime_.arena.reset_peaks();
  accumulate(batches);

  runtime_.arena.begin_phase(Phase::step);
  const Rate rate = rate_of(options_.schedule, updates_);
  StepResult result;
  result.learning_rate = rate.learning_rate;
  result.loss_scale = scaler_.scale();
  // Before the update: its gathers go on while the next step begins, and the loss is not to wait.
  reduce_loss();
  optimizer_->measure(weights_, gradients_, norm_);
  optimizer_->update(weights_, gradients_, norm_, 1 / scaler_.scale(), rate, updates_ + 1);
  result.loss = mean_loss();
  const double squared = read_scalar(runtime_.device, norm_);
  runtime_.arena.end_phase();

  result.gradient_norm = std::sqrt(squared) / scaler_.scale();
  result.skipped = !std::isfinite(squared);
  ++steps_;
  if (!result.skipped) ++updates_;
  if (options_.dtype == DType::f16) {
    scaler_.update(result.skipped);
  } else if (result.skipped || !std::isfinite(result.loss)) {
    throw Diverged(fmt::format("step {}: the loss is {}, the gradients' norm {}", steps_,
                               result.loss, result.gradient_norm));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace shardplan::validator
