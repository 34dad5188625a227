#include "engine/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>
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
      schedule_(schedule_of(options.pipeline, runtime.stages.rank(), options.accumulation)),
      sharding_{options.stage, runtime.ranks.size(), runtime.ranks.rank(), runtime.copies.size(),
                runtime.copies.rank()},
      loss_(runtime.arena.allocate("loss", Category::logits_and_loss, statistic_type(options.dtype),
                                   {1})),
      norm_(runtime.arena.allocate("gradient_norm", Category::other, statistic_type(options.dtype),
                                   {1})),
      weights_(runtime_, network_->units(), sharding_, options.dtype, network_->tied(),
               options.offload),
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
  network_->prepare(runtime_, slots_of(schedule_));
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
                                         options_.optimizer, options_.offload);
}

void Trainer::finish() {
  optimizer_->finish(weights_);
  runtime_.device.synchronize();
}

void Trainer::settle() {
  optimizer_->settle(weights_);
  runtime_.device.synchronize();
}

void Trainer::initialise() {
  validator::initialise(runtime_, network_->units(), sharding_, weights_, options_.seed,
                        network_->widened());
  begin();
}

void Trainer::begin() {
  optimizer_->begin(weights_);
  runtime_.device.synchronize();
  runtime_.ranks.barrier();
}

void Trainer::restore(const TrainingState& state) {
  steps_ = state.steps;
  updates_ = state.updates;
  scaler_.restore(state.scaler);
  optimizer_->restored(weights_, state.pending);
  const std::vector<Unit>& units = network_->units();
  // Where a rank keeps more than it owns, the others' parts are gathered as after an update.
  for (std::size_t u = 0; u < units.size(); ++u)
    if (!sharding_.undivided(units[u])) weights_.updated(static_cast<int>(u), Stream::compute);
  runtime_.device.synchronize();
  runtime_.ranks.barrier();
}

void Trainer::accumulate(BatchSource& batches) {
  Arena& arena = runtime_.arena;
  gradients_.begin_step();
  arena.begin_phase(Phase::forward);
  std::optional<Arena::Scope> step(arena);
  network_->begin_step(runtime_);
  arena.end_phase();
  for (const Turn& turn : schedule_) {
    exchange(turn);
    for (const Pass& pass : turn.passes) {
      arena.begin_phase(pass.kind == Pass::Kind::forward ? Phase::forward : Phase::backward);
      run(pass, batches);
      arena.end_phase();
    }
  }
  arena.begin_phase(Phase::backward);
  gradients_.finish();
  step.reset();
  arena.end_phase();
}

void Trainer::exchange(const Turn& turn) {
  if (turn.out.empty() && turn.in.empty()) return;
  std::vector<Parcel> out, in;
  for (const Message& m : turn.out) out.push_back({m.peer, network_->made(m.pass)});
  for (const Message& m : turn.in) in.push_back({m.peer, network_->given(m.pass)});
  in_line(runtime_.device, computed_, [&] { runtime_.stages.exchange(out, in); });
}

void Trainer::run(const Pass& pass, BatchSource& batches) {
  const bool first = pass.micro_batch == 0, last = pass.micro_batch + 1 == options_.accumulation;
  gradients_.begin_micro_batch(first, last);
  if (pass.kind == Pass::Kind::backward)
    return network_->backward(runtime_, weights_, gradients_, pass);
  const Pipeline& p = options_.pipeline;
  const int stage = runtime_.stages.rank();
  const bool reads = p.begins(stage, pass.chunk) || p.ends(stage, pass.chunk);
  const Batch batch = reads ? batches.next(steps_, pass.micro_batch) : Batch{};
  const auto tokens =
      static_cast<double>(network_->rows() * options_.accumulation * sharding_.world);
  network_->forward(runtime_, weights_, gradients_, pass,
                    {batch, first, static_cast<float>(scaler_.scale() / tokens)}, loss_);
}

void Trainer::reduce_loss() {
  Communicator& stages = runtime_.stages;
  const int last = stages.size() - 1;
  const bool others = sharding_.world > 1, adds = stages.rank() == last && others;
  const Tensor dropped = network_->dropped();
  const bool parts = runtime_.tensor.size() > 1 && !dropped.empty();
  if (!others && last == 0 && !parts) return;
  in_line(runtime_.device, computed_, [&] {
    if (adds) runtime_.ranks.all_reduce(loss_);
    if (last > 0) stages.broadcast(loss_, last);
    if (dropped.empty()) return;
    if (parts) runtime_.tensor.all_reduce(dropped);
    if (others) runtime_.ranks.all_reduce(dropped);
    if (last > 0) stages.all_reduce(dropped);
  });
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
  if (const Tensor dropped = network_->dropped(); !dropped.empty())
    result.dropped = read_scalar(runtime_.device, dropped);
  result.idle_experts = network_->idle_experts();
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
