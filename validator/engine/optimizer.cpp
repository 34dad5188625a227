#include "engine/optimizer.h"

namespace shardplan::validator {

AdamW Optimizer::operands(const Tensor& norm, double inverse_scale, const Rate& rate,
                          std::int64_t step) const {
  AdamW o;
  o.clipping = {norm, static_cast<float>(inverse_scale), static_cast<float>(options_.largest_norm)};
  o.learning_rate = static_cast<float>(rate.learning_rate);
  o.beta1 = static_cast<float>(rate.momentum ? rate.momentum->beta1 : options_.beta1);
  o.beta2 = static_cast<float>(rate.momentum ? rate.momentum->beta2 : options_.beta2);
  o.epsilon = static_cast<float>(options_.epsilon);
  o.weight_decay = static_cast<float>(options_.weight_decay);
  o.step = step;
  o.seed = options_.seed;
  return o;
}

void Optimizer::reduce_norm(const Tensor& norm) {
  if (sharding_.parts() == 1) return;
  runtime_.device.record(measured_, Stream::compute);
  runtime_.device.wait(Stream::communication, measured_);
  runtime_.ranks.all_reduce(norm);
  runtime_.device.record(reduced_, Stream::communication);
  runtime_.device.wait(Stream::compute, reduced_);
}

DeviceOptimizer::DeviceOptimizer(Runtime& runtime, const std::vector<Unit>& units,
                                 const Sharding& sharding, const Weights& weights,
                                 const OptimizerOptions& options)
    : Optimizer(runtime, sharding, options), units_(units) {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const Shape shape{weights.owned(static_cast<int>(u)).numel()};
    const auto tensor = [&](const char* name, Category category, DType dtype) {
      return runtime_.arena.allocate(units_[u].name + "." + name, category, dtype, shape);
    };
    State state;
    if (options_.master)
      state.master = tensor("master", Category::master_parameters, *options_.master);
    state.first_moment = tensor("first_moment", Category::optimizer_states, options_.states);
    state.second_moment = tensor("second_moment", Category::optimizer_states, options_.states);
    runtime_.device.zero(state.first_moment);
    runtime_.device.zero(state.second_moment);
    states_.push_back(state);
  }
}

void DeviceOptimizer::begin(Weights& weights) {
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (!states_[u].master.empty())
      runtime_.device.cast(states_[u].master, weights.owned(static_cast<int>(u)));
}

void DeviceOptimizer::measure(Weights&, const Gradients& gradients, const Tensor& norm) {
  for (std::size_t u = 0; u < units_.size(); ++u)
    runtime_.device.squared_norm(norm, gradients.owned(static_cast<int>(u)), u > 0);
  reduce_norm(norm);
}

void DeviceOptimizer::update(Weights& weights, const Gradients& gradients, const Tensor& norm,
                             double inverse_scale, const Rate& rate, std::int64_t step) {
  AdamW o = operands(norm, inverse_scale, rate, step);
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const int unit = static_cast<int>(u);
    o.parameter = weights.owned(unit);
    o.master = states_[u].master;
    o.gradient = gradients.owned(unit);
    o.first_moment = states_[u].first_moment;
    o.second_moment = states_[u].second_moment;
    o.first_element = units_[u].first_element + sharding_.first(units_[u]);
    runtime_.device.adamw(o);
    weights.updated(unit, Stream::compute);
  }
}

}  // namespace shardplan::validator
