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
  std::vector<bool> fresh(static_cast<std::size_t>(coordinator_.tensors().size()), false);
  for (const ModuleEvent& event : order) {
    if (event.begins_pass) {
      std::vector<GatherAction>& opening = passes_[event.backward].opening;
      opening = coordinator_.begin_pass();
      for (const GatherAction& action : opening)
        for (const TensorId t : coordinator_.bucket(action.bucket).tensors)
          fresh[static_cast<std::size_t>(t)] = true;
    }
    events_.push_back(event.release ? release(event) : use(event, fresh));
  }
}

ModuleGathers GatherSchedule::use(const ModuleEvent& event, std::vector<bool>& fresh) {
  ModuleGathers gathers;
  gathers.actions = coordinator_.use();
  for (const GatherAction& action : gathers.actions)
    if (action.kind == GatherAction::Kind::gather)
      for (const TensorId t : coordinator_.bucket(action.bucket).tensors)
        fresh[static_cast<std::size_t>(t)] = true;
  std::vector<TensorId> awaited;
  for (const TensorId t : coordinator_.tensors_of(event.module, event.layer)) {
    if (fresh[static_cast<std::size_t>(t)]) awaited.push_back(t);
    fresh[static_cast<std::size_t>(t)] = false;
  }
  for (GatherBucket& bucket : coordinator_.calls(std::move(awaited)))
    gathers.awaited.push_back(std::move(bucket.call.set));
  return gathers;
}

/// The first release of a tensor since the step leaves its secondary shard.
ModuleGathers GatherSchedule::release(const ModuleEvent& event) {
  ModuleGathers gathers;
  for (const TensorId t : coordinator_.release(event.module, event.layer)) {
    const ParameterId id = coordinator_.tensors().parameter(t);
    const bool divides = first_ && z_.secondary.follows(id) && !coordinator_.is_divided(t);
    if (divides) coordinator_.divided(t);
    gathers.gone.push_back({id, coordinator_.for_backward(t), divides});
  }
  return gathers;
}

void GatherSchedule::sign(Signature& signature, const ModuleEvent& event,
                          const ModuleGathers& gathers) const {
  signature.insert(signature.end(), {event.module, event.release, event.backward});
  for (const GatherAction& action : gathers.actions) {
    const GatherBucket& bucket = coordinator_.bucket(action.bucket);
    signature.insert(signature.end(), {static_cast<std::int64_t>(action.kind),
                                       bucket.call.set.stored, bucket.call.set.secondary});
    for (std::size_t i = 0; i < bucket.tensors.size(); ++i)
      signature.insert(signature.end(),
                       {bucket.call.set.ids[i], bucket.call.for_backward[i],
                        coordinator_.tensors().layer(bucket.tensors[i]) - event.layer});
  }
  for (const GatherSet& set : gathers.awaited)
    signature.insert(signature.end(), set.ids.begin(), set.ids.end());
  for (const ReleasedTensor& t : gathers.gone)
    signature.insert(signature.end(), {t.id, t.for_backward, t.divides});
}

bool GatherSchedule::flushes(std::size_t segment, std::int64_t iteration) const {
  const auto& first = z_.schedule.first_flush;
  return first && first->segment == segment && first->iteration == iteration;
}

void GatherSchedule::put_together(const std::vector<ModuleEvent>& order, bool backward) {
  Pass& pass = passes_[backward];
  const auto first = std::ranges::find(order, backward, &ModuleEvent::backward);
  auto event = static_cast<std::size_t>(first - order.begin());
  Signature last, signature;
  bool apart = false;
  const std::vector<SegmentRepeat> layers = single_layers(z_.run, backward);
  std::int64_t iteration = 0;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const bool same_segment = k > 0 && layers[k].segment == layers[k - 1].segment;
    iteration = same_segment ? iteration + 1 : 0;
    const std::size_t begin = event;
    signature.clear();
    for (; event < order.size() && order[event].backward == backward && order[event].repeat == k;
         ++event)
      sign(signature, order[event], events_[event]);
    const bool was_apart = std::exchange(apart, backward && flushes(layers[k].segment, iteration));
    if (same_segment && !apart && !was_apart && signature == last) {
      ++pass.repeats.back().count;
    } else {
      pass.repeats.push_back(layers[k]);
      pass.begins.push_back(begin);
    }
    std::swap(last, signature);
  }
}

}  // namespace shardplan
