#include "frameworks/deepspeed/coordinator.h"

#include <algorithm>

namespace shardplan {
namespace {

/// A layer begins that the omitted ones come right before.
bool follows(const OmittedLayers& omitted, const ModuleEvent& event) {
  return omitted.count > 0 && event.segment == omitted.segment &&
         event.layer == omitted.first - (event.backward ? 1 : 0);
}

}  // namespace

ParameterCoordinator::ParameterCoordinator(const DividedModel& z,
                                           const std::vector<ModuleEvent>& order,
                                           const OmittedLayers& omitted, bool first)
    : z_(z),
      first_(first),
      tensors_(z.model),
      gathered_of_(z.model.modules.size()),
      segment_of_(z.model.parameters.size(), 0),
      state_(tensors_.size()) {
  std::vector<std::int64_t> elements(z.model.modules.size(), 0);
  for (std::size_t m = 0; m < elements.size(); ++m)
    for (const ParameterId id : z.model.modules[m].parameters) {
      elements[m] += z.model.parameters[static_cast<std::size_t>(id)].numel;
      if (!z.gather.persistent(id)) gathered_of_[m].push_back(id);
    }
  for (std::vector<ParameterId>& ids : gathered_of_) {
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
  }
  std::int64_t before = 0, layer_begins = 0;
  queued_.reserve(order.size() / 2 + 1);
  before_.reserve(order.size() / 2 + 1);
  queue_.reserve(order.size());
  uses_.reserve(order.size() / 2 + 1);
  for (const ModuleEvent& event : order) {
    if (event.begins_layer) {
      if (follows(omitted, event)) before += omitted.count * (before - layer_begins);
      layer_begins = before;
    }
    if (event.release) continue;
    before_.push_back(before);
    before += elements[static_cast<std::size_t>(event.module)];
    queued_.push_back(queue_.size());
    for (const TensorId t : tensors_of(event)) {
      queue_.push_back({t, static_cast<std::int32_t>(uses_.size())});
      segment_of_[static_cast<std::size_t>(tensors_.parameter(t))] = event.segment;
    }
    uses_.push_back(event);
  }
  for (std::size_t i = queue_.size(); i-- > 0;)
    queue_[i].again = std::exchange(at(queue_[i].tensor).next_use, queue_[i].use);
}

const Parameter& ParameterCoordinator::parameter(TensorId t) const {
  return z_.model.parameters[static_cast<std::size_t>(tensors_.parameter(t))];
}

std::span<const TensorId> ParameterCoordinator::tensors_of(const ModuleEvent& event) {
  asked_.clear();
  for (const ParameterId id : gathered_of_[static_cast<std::size_t>(event.module)])
    asked_.push_back(tensors_.of(id, event.layer));
  return asked_;
}

void ParameterCoordinator::use(std::vector<GatherAction>& actions) {
  const ModuleEvent& used = uses_[static_cast<std::size_t>(next_)];
  for (std::int32_t i = 0; i < used.containers; ++i) prefetch(actions);
  for (const TensorId t : tensors_of(used)) {
    if (at(t).status != Status::away) continue;
    wanted_.push_back(t);
    at(t).for_backward = used.backward;
  }
  gather(actions);
  std::size_t unseen = 0, queued = queued_[static_cast<std::size_t>(next_)];
  for (const TensorId t : asked_) {
    wait_for(t, actions);
    Tensor& tensor = at(t);
    ++tensor.users;
    tensor.next_use = queue_[queued++].again;
    if (tensor.looked_at < next_) ++unseen;
  }
  for (; unseen > 0 && head_ < queue_.size(); --unseen) take();
  prefetch(actions);
  ++next_;
}

const ParameterCoordinator::Queued& ParameterCoordinator::take() {
  const Queued& queued = queue_[head_++];
  at(queued.tensor).looked_at = std::max(at(queued.tensor).looked_at, queued.use);
  return queued;
}

void ParameterCoordinator::prefetch(std::vector<GatherAction>& actions) {
  const std::int64_t most =
      std::min(z_.zero.max_live_parameters - available_, z_.zero.prefetch_bucket_size);
  for (std::int64_t elements = 0; head_ < queue_.size() && elements < most;) {
    const Queued& queued = take();
    Tensor& tensor = at(queued.tensor);
    if (tensor.status != Status::away) continue;
    tensor.status = Status::in_flight;  // the queue may have it again
    tensor.for_backward = uses_[static_cast<std::size_t>(queued.use)].backward;
    wanted_.push_back(queued.tensor);
    elements += parameter(queued.tensor).numel;
  }
  gather(actions);
}

bool ParameterCoordinator::has_secondary(TensorId t) {
  return z_.secondary.exist() && (!first_ || !parameter(t).trainable || is_divided(t));
}

/// Trainable parameters and frozen ones go in calls of their own where some are quantized at rest
/// or have secondary shards already (__all_gather_params), and so do those of other groups of ranks
/// (all_gather_coalesced).
bool ParameterCoordinator::same_call(TensorId a, TensorId b) {
  const Parameter &p = parameter(a), &q = parameter(b);
  const bool alike = !z_.zero.quantized_nontrainable_weights || p.trainable == q.trainable;
  return alike && has_secondary(a) == has_secondary(b) && z_.e.ranks_of(p) == z_.e.ranks_of(q);
}

void ParameterCoordinator::gather(std::vector<GatherAction>& actions) {
  std::ranges::sort(wanted_);
  for (auto rest = wanted_.begin(); rest != wanted_.end();) {
    const TensorId first = *rest;
    const auto others =
        std::stable_partition(rest, wanted_.end(), [&](TensorId t) { return same_call(first, t); });
    Bucket bucket{.awaited = others - rest,
                  .stored = !parameter(first).trainable && z_.zero.quantized_nontrainable_weights,
                  .secondary = has_secondary(first)};
    for (; rest != others; ++rest) {
      Tensor& tensor = at(*rest);
      tensor.status = Status::in_flight;
      tensor.fresh = true;
      tensor.bucket = buckets_.size();
      available_ += parameter(*rest).numel;
      gathered_.push_back({*rest, tensor.for_backward});
    }
    bucket.end = gathered_.size();
    actions.push_back({GatherAction::Kind::gather, buckets_.size()});
    buckets_.push_back(bucket);
  }
  wanted_.clear();
}

std::span<const GatheredTensor> ParameterCoordinator::tensors_in(std::size_t bucket) const {
  const std::size_t begin = bucket == 0 ? 0 : buckets_[bucket - 1].end;
  return std::span(gathered_).subspan(begin, buckets_[bucket].end - begin);
}

GatherSet ParameterCoordinator::set_of(std::size_t bucket, std::vector<ParameterId> ids) const {
  return {std::move(ids), buckets_[bucket].stored, buckets_[bucket].secondary};
}

void ParameterCoordinator::describe(std::size_t bucket, GatherCall& call) const {
  call.set.ids.clear();
  call.for_backward.clear();
  call.set.stored = buckets_[bucket].stored;
  call.set.secondary = buckets_[bucket].secondary;
  for (const GatheredTensor& t : tensors_in(bucket)) {
    call.set.ids.push_back(tensors_.parameter(t.tensor));
    call.for_backward.push_back(t.for_backward);
  }
}

void ParameterCoordinator::wait_for(TensorId t, std::vector<GatherAction>& actions) {
  if (at(t).status != Status::in_flight) return;
  at(t).status = Status::there;
  Bucket& bucket = buckets_[at(t).bucket];
  if (!bucket.arrived) actions.push_back({GatherAction::Kind::arrive, at(t).bucket});
  bucket.arrived = true;
  if (--bucket.awaited == 0) actions.push_back({GatherAction::Kind::settle, at(t).bucket});
}

/// __params_to_release: what the queue has given out for a later use stays, unless that is the very
/// next call of a module, and so does what is used again before `max_reuse_distance` elements of
/// other modules are.
bool ParameterCoordinator::stays(TensorId t) {
  const Tensor& tensor = at(t);
  if (tensor.looked_at > next_) return true;
  if (tensor.looked_at == next_) {
    const ModuleEvent& again = uses_[static_cast<std::size_t>(next_)];
    if (again.begins_pass || again.containers > 0) return true;
  }
  if (tensor.next_use < 0) return false;
  return before_[static_cast<std::size_t>(tensor.next_use)] -
             before_[static_cast<std::size_t>(next_)] <
         z_.zero.max_reuse_distance;
}

std::span<const TensorId> ParameterCoordinator::release(const ModuleEvent& event) {
  gone_.clear();
  for (const TensorId t : tensors_of(event)) {
    Tensor& tensor = at(t);
    tensor.users = std::max(tensor.users - 1, 0);
    if (tensor.users > 0 || tensor.status != Status::there || stays(t)) continue;
    tensor.status = Status::away;
    available_ -= parameter(t).numel;
    gone_.push_back(t);
  }
  return gone_;
}

const ModuleEvent* ParameterCoordinator::read_for() const {
  return head_ == 0 ? nullptr : &uses_[static_cast<std::size_t>(queue_[head_ - 1].use)];
}

void ParameterCoordinator::append_name(std::vector<std::int64_t>& state, TensorId t,
                                       std::size_t segment, std::int64_t layer) const {
  const ParameterId id = tensors_.parameter(t);
  const bool counted = segment_of_[static_cast<std::size_t>(id)] == segment;
  state.insert(state.end(), {id, tensors_.layer(t) - (counted ? layer : 0)});
}

/// Of tensors that are away nothing matters but whether the queue has come upon them; of a call,
/// what it gathers as long as something waits for it.
std::vector<std::int64_t> ParameterCoordinator::state(std::size_t segment,
                                                      std::int64_t layer) const {
  const auto next = static_cast<std::size_t>(next_);
  const std::size_t begin = next < uses_.size() ? queued_[next] : queue_.size();
  std::vector<std::int64_t> state{available_, static_cast<std::int64_t>(head_ - begin)};
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const Tensor& tensor = state_[i];
    const std::int32_t looked_at = std::max(tensor.looked_at - next_, -1);
    if (tensor.status == Status::away && looked_at < 0) continue;
    append_name(state, static_cast<TensorId>(i), segment, layer);
    state.insert(state.end(), {static_cast<std::int64_t>(tensor.status), tensor.divided,
                               tensor.fresh, tensor.for_backward, tensor.users, looked_at});
    if (tensor.status == Status::away || buckets_[tensor.bucket].awaited == 0) continue;
    const Bucket& bucket = buckets_[tensor.bucket];
    state.insert(state.end(), {static_cast<std::int64_t>(buckets_.size() - tensor.bucket),
                               bucket.awaited, bucket.arrived, bucket.stored, bucket.secondary});
    for (const GatheredTensor& t : tensors_in(tensor.bucket)) {
      append_name(state, t.tensor, segment, layer);
      state.push_back(t.for_backward);
    }
  }
  return state;
}

}  // namespace shardplan
