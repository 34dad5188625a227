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

/// Whether ranks that share layers have experts as ranks with other samples do.
bool Optimizer::experts_cross_layers() const {
  return runtime_.experts.size() * runtime_.copies.size() > runtime_.ranks.size();
}

/// Undivided states are there several times: one of the ranks that reduce_norm() sums over counts
/// them.
bool Optimizer::counts(const Unit& unit) const {
  if (sharding_.stage > 0) return true;
  if (experts_cross_layers()) return runtime_.ranks_of(unit).rank() == 0;
  return unit.of_experts() || runtime_.experts.rank() == 0;
}

void Optimizer::reduce_norm(const Tensor& norm) {
  // Undivided states: all ranks have the same, beside experts of their own.
  Communicator& owners =
      sharding_.stage == 0 && !experts_cross_layers() ? runtime_.experts : runtime_.ranks;
  if (owners.size() == 1 && runtime_.tensor.size() == 1 && runtime_.stages.size() == 1) return;
  in_line(runtime_.device, reduced_, [&] {
    if (owners.size() > 1) owners.all_reduce(norm);
    if (runtime_.tensor.size() > 1) runtime_.tensor.all_reduce(norm);
    if (runtime_.stages.size() > 1) runtime_.stages.all_reduce(norm);
  });
}

/// What this rank counts of a unit's gradients: all that it owns, but of those that the ranks that
/// share each layer have alike only the first rank's, and no copy of another stage's.
std::vector<ElementRange> Optimizer::counted(const Unit& unit) const {
  if (!counts(unit)) return {};
  const ElementRange owned{sharding_.first(unit), sharding_.shard(unit)};
  std::vector<ElementRange> ranges;
  std::int64_t begin = 0;
  const auto count_to = [&](std::int64_t end) {
    const ElementRange part = overlap(owned, begin, end - begin);
    if (part.count > 0) ranges.push_back({part.first - owned.first, part.count});
  };
  for (const ParameterSpec& p : unit.parameters) {
    const bool mine = runtime_.tensor.rank() == 0 || p.sharing == Sharing::parts;
    if (mine && p.ends != Ends::copy) continue;
    count_to(p.offset);
    begin = p.offset + p.shape.numel();
  }
  count_to(sharding_.padded(unit));
  return ranges;
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
    UnitStates state;
    if (units_[u].frozen) {
      states_.push_back(state);
      counted_.emplace_back();
      continue;
    }
    if (options_.master)
      state.master = tensor("master", Category::master_parameters, *options_.master);
    state.first_moment = tensor("first_moment", Category::optimizer_states, options_.states);
    state.second_moment = tensor("second_moment", Category::optimizer_states, options_.states);
    runtime_.device.zero(state.first_moment);
    runtime_.device.zero(state.second_moment);
    states_.push_back(state);
    counted_.push_back(counted(units_[u]));
  }
}

void DeviceOptimizer::begin(Weights& weights) {
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (!states_[u].master.empty())
      runtime_.device.cast(states_[u].master, weights.owned(static_cast<int>(u)));
}

void DeviceOptimizer::measure(Weights&, const Gradients& gradients, const Tensor& norm) {
  bool more = false;
  for (std::size_t u = 0; u < units_.size(); ++u)
    for (const ElementRange& range : counted_[u]) {
      const Tensor owned = gradients.owned(static_cast<int>(u));
      runtime_.device.squared_norm(norm, owned.slice(range.first, range.count), more);
      more = true;
    }
  if (!more) runtime_.device.zero(norm);
  reduce_norm(norm);
}

void DeviceOptimizer::update(Weights& weights, const Gradients& gradients, const Tensor& norm,
                             double inverse_scale, const Rate& rate, std::int64_t step) {
  AdamW o = operands(norm, inverse_scale, rate, step);
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].frozen) continue;
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
