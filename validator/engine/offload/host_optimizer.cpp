#include "engine/offload/host_optimizer.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace shardplan::validator {

HostOptimizer::HostOptimizer(Runtime& runtime, const std::vector<Unit>& units,
                             const Sharding& sharding, Weights& weights, HostGradients& gradients,
                             const OptimizerOptions& options, const Offload& offload)
    : Optimizer(runtime, sharding, options),
      units_(units),
      gradients_(gradients),
      delayed_(offload.delayed),
      copied_(runtime.device.new_event()) {
  const StateKinds kinds{options.master, options.states};
  states_ = offload.on_nvme ? make_swapped_states(runtime, units, sharding, kinds)
                            : make_resident_states(runtime, units, sharding, kinds);
  allocate(weights);
  if (delayed_) return;
  // A master is all that an update needs; without one it needs what the parameters were.
  weights.before_use([this, &weights](int unit) { update_unit(weights, unit); },
                     [this](int unit) {
                       return !is_left(unit)    ? Weights::Awaited::nothing
                              : options_.master ? Weights::Awaited::overwrite
                                                : Weights::Awaited::change;
                     });
}

void HostOptimizer::allocate(const Weights& weights) {
  std::int64_t largest = 0;
  const DType dtype = weights.dtype();
  Arena& pinned = runtime_.host->pinned;
  for (const Unit& unit : units_) {
    const std::int64_t shard = sharding_.shard(unit);
    Home home;
    home.sent = runtime_.device.new_event();
    counted_.push_back(unit.frozen ? std::vector<ElementRange>{} : counted(unit));
    if (unit.frozen) {
      homes_.push_back(home);
      continue;
    }
    largest = std::max(largest, std::min(shard, kBucketElements));
    if (!options_.master && weights.shards() == nullptr)
      home.parameter =
          pinned.allocate(unit.name + ".updated", Category::parameters, dtype, {shard});
    homes_.push_back(home);
  }
  if (!options_.master || weights.shards() != nullptr) return;
  for (int i = 0; i < 2; ++i)
    staging_.push_back({pinned.allocate(fmt::format("staging.{}", i),
                                        Category::communication_buffers, dtype, {largest}),
                        runtime_.device.new_event()});
}

void HostOptimizer::begin(Weights& weights) {
  HostCompute& cores = runtime_.host->compute;
  for (int u = 0; u < static_cast<int>(units_.size()); ++u) {
    if (at(units_, u).frozen) continue;
    const Home& home = at(homes_, u);
    Tensor first;
    if (weights.shards() != nullptr) {
      if (options_.master) first = weights.shards()->look(u);
    } else {
      // A unit's gradient is not there yet: its room will do until the masters are made.
      first = home.parameter.empty() ? gradients_.of(0, u) : home.parameter;
      fetch_owned(weights, u, first);
    }
    // Bucket by bucket, as they are updated: each thread writes its own part first.
    for_each_bucket(sharding_.shard(at(units_, u)), [&](std::int64_t b, auto&& range) {
      const BucketStates states = states_->create(u, b);
      cores.zero(states.first_moment);
      cores.zero(states.second_moment);
      if (!states.master.empty()) cores.cast(states.master, range(first));
      states_->keep();
    });
  }
  settle_files(weights);
}

void HostOptimizer::settle(Weights& weights) {
  // A delayed update is none of the steps so far.
  if (!delayed_) update_all(weights);
  settle_files(weights);
}

void HostOptimizer::settle_files(const Weights& weights) {
  states_->settle();
  if (weights.shards() != nullptr) weights.shards()->settle();
}

std::optional<PendingUpdate> HostOptimizer::pending() const {
  if (!delayed_ || !pending_) return std::nullopt;
  return pending_->what;
}

void HostOptimizer::restored(Weights& weights, const std::optional<PendingUpdate>& pending) {
  for (int u = 0; u < static_cast<int>(units_.size()); ++u)
    if (const Tensor& home = at(homes_, u).parameter; !home.empty()) fetch_owned(weights, u, home);
  settle_files(weights);
  if (pending) begin_update(*pending);
}

/// Waits for it.
void HostOptimizer::fetch_owned(const Weights& weights, int unit, const Tensor& to) {
  runtime_.device.record(copied_, Stream::compute);
  runtime_.device.wait(Stream::to_host, copied_);
  runtime_.device.fetch(to, weights.owned(unit));
  runtime_.device.record(copied_, Stream::to_host);
  runtime_.device.await(copied_);
}

void HostOptimizer::measure(Weights& weights, const Gradients&, const Tensor& norm) {
  update_all(weights);  // of a delayed update: beside this step's passes, which are under way
  norm_ = static_cast<float>(gradients_.squared_norm(counted_));
  runtime_.device.upload(norm, std::as_bytes(std::span(&norm_, 1)));
  reduce_norm(norm);
}

void HostOptimizer::update(Weights&, const Gradients&, const Tensor& norm, double inverse_scale,
                           const Rate& rate, std::int64_t step) {
  runtime_.device.download(std::as_writable_bytes(std::span(&norm_, 1)), norm);
  if (std::isfinite(norm_)) begin_update({norm_, inverse_scale, rate, step});
}

void HostOptimizer::begin_update(const PendingUpdate& what) {
  norm_ = static_cast<float>(what.squared_norm);
  const Tensor here{reinterpret_cast<std::uintptr_t>(&norm_), DType::f32, Shape{1}};
  pending_ = {what, operands(here, what.inverse_scale, what.rate, what.step), gradients_.set(), {}};
  for (const Unit& unit : units_) pending_->left.push_back(unit.frozen ? 0 : 1);
}

void HostOptimizer::finish(Weights& weights) {
  update_all(weights);
  settle_files(weights);
}

void HostOptimizer::update_all(Weights& weights) {
  // As the backward pass lets go of them.
  for (int u = static_cast<int>(units_.size()) - 1; u >= 0; --u) update_unit(weights, u);
  pending_.reset();
}

void HostOptimizer::update_unit(Weights& weights, int unit) {
  if (!is_left(unit)) return;
  at(pending_->left, unit) = 0;
  const Home& home = at(homes_, unit);
  const Tensor gradient = gradients_.of(pending_->gradients, unit);
  wait_for_readers(weights, unit);
  HostShards* shards = weights.shards();
  const Tensor owned = shards == nullptr ? weights.owned(unit)
                       : options_.master ? shards->create(unit)
                                         : shards->take(unit);
  for_each_bucket(gradient.numel(), [&](std::int64_t b, auto&& range) {
    AdamW o = pending_->common;
    o.gradient = range(gradient);
    const BucketStates states = states_->take(unit, b);
    o.master = states.master;
    o.first_moment = states.first_moment;
    o.second_moment = states.second_moment;
    o.first_element =
        at(units_, unit).first_element + sharding_.first(at(units_, unit)) + b * kBucketElements;
    if (shards != nullptr) {
      o.parameter = range(owned);
      runtime_.host->compute.adamw(o);
    } else {
      update_bucket(o, range(home.parameter), range(owned));
    }
    states_->keep();
  });
  if (shards != nullptr) shards->keep(unit);
  runtime_.device.record(home.sent, Stream::to_device);
  weights.updated(unit, Stream::to_device);
}

void HostOptimizer::wait_for_readers(const Weights& weights, int unit) {
  runtime_.device.await(at(homes_, unit).sent);
  if (!delayed_) return;  // the passes of the step are over
  // Those of the step after it go on without the update.
  if (weights.shards() != nullptr) {
    runtime_.device.await(weights.released(unit));
  } else {
    runtime_.device.wait(Stream::to_device, weights.released(unit));
  }
}

void HostOptimizer::update_bucket(AdamW& o, const Tensor& home, const Tensor& on_device) {
  if (!home.empty()) {
    o.parameter = home;
    runtime_.host->compute.adamw(o);
    runtime_.device.send(on_device, home);
    return;
  }
  Staging& staging = staging_[next_staging_];
  next_staging_ = (next_staging_ + 1) % staging_.size();
  if (staging.used) runtime_.device.await(staging.sent);
  o.parameter = staging.tensor.slice(0, on_device.numel());
  runtime_.host->compute.adamw(o);
  runtime_.device.send(on_device, o.parameter);
  runtime_.device.record(staging.sent, Stream::to_device);
  staging.used = true;
}

}  // namespace shardplan::validator
