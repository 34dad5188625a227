#include "frameworks/deepspeed/gather_schedule.h"

#include <algorithm>
#include <utility>

namespace shardplan {
namespace {

/// Of the segment with most layers those that stand farther from its ends than the coordinator
/// looks, beside what it needs to come into its stride.
OmittedLayers middle_layers(const Stage3& z) {
  if (!z.gather.gathers() || z.run.segments.empty()) return {};
  const auto longest = std::ranges::max_element(
      z.run.segments, {}, [](const SegmentRun& s) { return s.segment->repeat; });
  if (longest->others) return {};
  std::int64_t elements = 0;
  for (const TapeEvent& e : longest->forward.forward) {
    if (e.kind != TapeEvent::Kind::fetch) continue;
    for (const ParameterId id : z.model.modules[static_cast<std::size_t>(e.id)].parameters)
      if (!z.gather.persistent(id))
        elements += z.model.parameters[static_cast<std::size_t>(id)].numel;
  }
  if (elements == 0) return {};
  const std::int64_t looks = std::max(
      {z.zero.max_live_parameters, z.zero.max_reuse_distance, z.zero.prefetch_bucket_size});
  const std::int64_t kept = looks / elements + 4;
  return {static_cast<std::size_t>(longest - z.run.segments.begin()), kept,
          std::max<std::int64_t>(longest->segment->repeat - 2 * kept, 0)};
}

}  // namespace

GatherSchedule::GatherSchedule(const Stage3& z, const OmittedLayers& omitted, bool first)
    : z_(z),
      omitted_(omitted),
      first_(first),
      order_(z.gather.gathers() ? fetch_order(z.model, z.run, omitted)
                                : std::vector<ModuleEvent>{}),
      coordinator_(z.divided(), order_, omitted, first) {
  run();
  for (const bool backward : {false, true}) put_together(backward);
  set_flush_apart();
}

void GatherSchedule::run() {
  ends_.reserve(order_.size());
  actions_.reserve(order_.size());
  for (const ModuleEvent& event : order_) {
    if (event.begins_pass) coordinator_.begin_pass(passes_[event.backward].opening);
    if (event.begins_layer && event.segment == omitted_.segment && omitted_.count > 0) watch(event);
    event.release ? release(event) : use(event);
    ends_.push_back({actions_.size(), awaited_.size(), gone_.size()});
  }
}

void GatherSchedule::watch(const ModuleEvent& event) {
  Pass& pass = passes_[event.backward];
  const std::int64_t place =
      event.backward ? omitted_.first - event.layer : event.layer - omitted_.first + 1;
  if (place < 0 || place > 2) return;
  pass.states.push_back(coordinator_.state(event.segment, event.layer));
  const ModuleEvent* read = coordinator_.read_for();
  pass.stays_in_segment = !read || (read->segment == event.segment &&
                                    read->backward == event.backward && read->layer > 0);
}

/// A pass without these layers has no states: nothing is gathered for them.
bool GatherSchedule::steady() const {
  return std::ranges::all_of(passes_, [](const Pass& pass) {
    if (pass.states.empty()) return true;
    return pass.states.size() == 3 && pass.states[0] == pass.states[1] &&
           pass.states[1] == pass.states[2] && pass.stays_in_segment;
  });
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

bool GatherSchedule::alike(std::size_t first, std::size_t other, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const ModuleEvent &a = order_[first + i], &b = order_[other + i];
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

void GatherSchedule::put_together(bool backward) {
  Pass& pass = passes_[backward];
  auto event = static_cast<std::size_t>(
      std::ranges::find(order_, backward, &ModuleEvent::backward) - order_.begin());
  std::size_t last = event;
  for (const auto [segment, layer] : layers_in_order(z_.run, omitted_, backward)) {
    const std::size_t begin = event;
    while (event < order_.size() && order_[event].backward == backward &&
           order_[event].segment == segment && order_[event].layer == layer)
      ++event;
    const bool joins = !pass.repeats.empty() && pass.repeats.back().segment == segment &&
                       event - begin == begin - last && alike(last, begin, event - begin);
    last = begin;
    if (!joins) {
      pass.repeats.push_back({segment, 0});
      pass.begins.push_back(begin);
    }
    const bool beside = segment == omitted_.segment && layer == omitted_.first - (backward ? 0 : 1);
    pass.repeats.back().count += 1 + (beside ? omitted_.count : 0);
  }
}

void GatherSchedule::set_flush_apart() {
  if (!z_.schedule.first_flush) return;
  const BackwardPlace& flush = *z_.schedule.first_flush;
  Pass& pass = passes_[true];
  std::int64_t until = 0;  // iterations of the segment before repeat k
  for (std::size_t k = 0; k < pass.repeats.size(); ++k) {
    if (pass.repeats[k].segment != flush.segment) continue;
    const std::int64_t count = pass.repeats[k].count, before = flush.iteration - until;
    until += count;
    if (before >= count) continue;
    const auto at = static_cast<std::ptrdiff_t>(k);
    for (const std::int64_t part : {count - before - 1, std::int64_t{1}, before}) {
      if (part == 0) continue;
      pass.repeats.insert(pass.repeats.begin() + at + 1, {flush.segment, part});
      pass.begins.insert(pass.begins.begin() + at, pass.begins[k]);
    }
    pass.repeats.erase(pass.repeats.begin() + at);
    pass.begins.erase(pass.begins.begin() + at);
    return;
  }
}

GatherSchedule gather_schedule(const Stage3& z, bool first) {
  if (const OmittedLayers most = middle_layers(z); most.count > 0) {
    GatherSchedule schedule(z, most, first);
    if (schedule.steady()) return schedule;
  }
  return {z, {}, first};
}

}  // namespace shardplan
