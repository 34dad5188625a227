#include "frameworks/deepspeed/gather_schedule.h"

#include <algorithm>
#include <utility>

namespace shardplan {

GatherSchedule::GatherSchedule(const Stage3& z, const std::vector<ModuleEvent>& order, bool first)
    : z_(z), first_(first), coordinator_(z, order, first) {
  run(order);
  for (const bool backward : {false, true}) put_together(order, backward);
}

void GatherSchedule::run(const std::vector<ModuleEvent>& order) {
  for (const ModuleEvent& event : order) {
    if (event.begins_pass) coordinator_.begin_pass(passes_[event.backward].opening);
    event.release ? release(event) : use(event);
    ends_.push_back({actions_.size(), awaited_.size(), gone_.size()});
  }
}

void GatherSchedule::use(const ModuleEvent& event) {
  coordinator_.use(actions_);
  for (const TensorId t : coordinator_.tensors_of(event))
    if (coordinator_.take_fresh(t))
      awaited_.push_back({coordinator_.tensors().parameter(t), coordinator_.bucket_of(t)});
}

/// The first release of a tensor since the step leaves its secondary shard.
void GatherSchedule::release(const ModuleEvent& event) {
  for (const TensorId t : coordinator_.release(event)) {
    const ParameterId id = coordinator_.tensors().parameter(t);
    const bool divides = first_ && z_.secondary.follows(id) && !coordinator_.is_divided(t);
    if (divides) coordinator_.divided(t);
    gone_.push_back({id, coordinator_.for_backward(t), divides});
  }
}

ModuleGathers GatherSchedule::at(std::size_t event) const {
  const Ends from = event == 0 ? Ends{} : ends_[event - 1];
  const Ends& to = ends_[event];
  const auto actions = std::span(actions_).subspan(from.actions, to.actions - from.actions);
  std::size_t ahead = actions.size();
  while (ahead > 0 && actions[ahead - 1].kind == GatherAction::Kind::gather) --ahead;
  return {actions, ahead, std::span(awaited_).subspan(from.awaited, to.awaited - from.awaited),
          std::span(gone_).subspan(from.gone, to.gone - from.gone)};
}

std::vector<GatherSet> GatherSchedule::awaited_sets(const ModuleGathers& gathers) const {
  std::vector<GatherSet> sets;
  std::size_t bucket = 0;
  for (const AwaitedTensor& t : gathers.awaited) {
    if (sets.empty() || t.bucket != bucket) sets.push_back(coordinator_.set_of(t.bucket, {}));
    bucket = t.bucket;
    sets.back().ids.push_back(t.id);
  }
  return sets;
}

bool GatherSchedule::alike(std::size_t bucket, std::size_t other, std::int64_t layers) const {
  const TensorTable& tensors = coordinator_.tensors();
  return std::ranges::equal(coordinator_.tensors_in(bucket), coordinator_.tensors_in(other),
                            [&](const GatheredTensor& t, const GatheredTensor& u) {
                              return tensors.parameter(t.tensor) == tensors.parameter(u.tensor) &&
                                     t.for_backward == u.for_backward &&
                                     tensors.layer(u.tensor) - tensors.layer(t.tensor) == layers;
                            });
}

bool GatherSchedule::alike(const ModuleEvent* events, std::size_t first, std::size_t other,
                           std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const ModuleEvent &a = events[first + i], &b = events[other + i];
    if (a.module != b.module || a.release != b.release) return false;
    const ModuleGathers x = at(first + i), y = at(other + i);
    const auto same = [&](const GatherAction& p, const GatherAction& q) {
      return p.kind == q.kind && alike(p.bucket, q.bucket, b.layer - a.layer);
    };
    if (!std::ranges::equal(x.actions, y.actions, same) || !std::ranges::equal(x.gone, y.gone) ||
        !std::ranges::equal(x.awaited, y.awaited, {}, &AwaitedTensor::id, &AwaitedTensor::id))
      return false;
  }
  return true;
}

bool GatherSchedule::flushes(std::size_t segment, std::int64_t iteration) const {
  const auto& first = z_.schedule.first_flush;
  return first && first->segment == segment && first->iteration == iteration;
}

void GatherSchedule::put_together(const std::vector<ModuleEvent>& order, bool backward) {
  Pass& pass = passes_[backward];
  const auto first = std::ranges::find(order, backward, &ModuleEvent::backward);
  auto event = static_cast<std::size_t>(first - order.begin());
  bool apart = false;
  const std::vector<SegmentRepeat> layers = single_layers(z_.run, backward);
  std::int64_t iteration = 0;
  std::size_t last = event;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const bool same_segment = k > 0 && layers[k].segment == layers[k - 1].segment;
    iteration = same_segment ? iteration + 1 : 0;
    const std::size_t begin = event;
    while (event < order.size() && order[event].backward == backward && order[event].repeat == k)
      ++event;
    const bool was_apart = std::exchange(apart, backward && flushes(layers[k].segment, iteration));
    const bool joins = same_segment && !apart && !was_apart && event - begin == begin - last &&
                       alike(order.data(), last, begin, event - begin);
    last = begin;
    if (joins) {
      ++pass.repeats.back().count;
      continue;
    }
    pass.repeats.push_back(layers[k]);
    pass.begins.push_back(begin);
  }
}

}  // namespace shardplan
