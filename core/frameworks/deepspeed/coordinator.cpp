#include "frameworks/deepspeed/coordinator.h"

#include <algorithm>

namespace shardplan {

TensorTable::TensorTable(const Model& model) : place_(model.parameters.size()) {
  for (const ParameterGroup& group : model.groups)
    for (std::int64_t layer = 0; layer < group.repeat; ++layer)
      for (ParameterId id = group.first; id < group.first + group.count; ++id) {
        if (layer == 0)
          place_[static_cast<std::size_t>(id)] = {static_cast<TensorId>(parameter_.size()),
                                                  group.repeat > 1 ? group.count : 0};
        parameter_.push_back(id);
        layer_.push_back(layer);
      }
}

TensorId TensorTable::of(ParameterId id, std::int64_t layer) const {
  const Place& place = place_[static_cast<std::size_t>(id)];
  return place.first + static_cast<TensorId>(layer) * place.step;
}

ParameterCoordinator::ParameterCoordinator(const Stage3& z, const std::vector<ModuleEvent>& order,
                                           bool first)
    : z_(z),
      first_(first),
      tensors_(z.model),
      state_(static_cast<std::size_t>(tensors_.size())),
      divided_(state_.size(), false) {
  std::int64_t before = 0;
  for (const ModuleEvent& event : order) {
    if (event.release) continue;
    const auto use = static_cast<std::int64_t>(uses_.size());
    uses_.push_back(event);
    before_.push_back(before);
    for (const ParameterId id :
         z.model.modules[static_cast<std::size_t>(event.module)].parameters)
      before += z.model.parameters[static_cast<std::size_t>(id)].numel;
    for (const TensorId t : tensors_of(event.module, event.layer)) {
      queue_.push_back({t, use});
      at(t).uses.push_back(use);
    }
  }
}

const Parameter& ParameterCoordinator::parameter(TensorId t) const {
  return z_.model.parameters[static_cast<std::size_t>(tensors_.parameter(t))];
}

std::vector<TensorId> ParameterCoordinator::tensors_of(ModuleId id, std::int64_t layer) const {
  std::vector<TensorId> tensors;
  for (const ParameterId p : z_.model.modules[static_cast<std::size_t>(id)].parameters)
    if (!z_.gather.persistent(p)) tensors.push_back(tensors_.of(p, layer));
  std::sort(tensors.begin(), tensors.end());
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  return tensors;
}

std::vector<GatherAction> ParameterCoordinator::begin_pass() {
  std::vector<GatherAction> actions;
  prefetch(actions);
  return actions;
}

std::vector<GatherAction> ParameterCoordinator::use() {
  std::vector<GatherAction> actions;
  const ModuleEvent& used = uses_[static_cast<std::size_t>(next_)];
  for (std::int32_t i = 0; i < used.containers; ++i) prefetch(actions);
  const std::vector<TensorId> tensors = tensors_of(used.module, used.layer);
  std::vector<TensorId> away;
  for (const TensorId t : tensors)
    if (at(t).status == Status::away) {
      away.push_back(t);
      at(t).wanted = next_;
    }
  gather(std::move(away), actions);
  std::size_t unseen = 0;
  for (const TensorId t : tensors) {
    wait_for(t, actions);
    ++at(t).users;
    if (at(t).looked_at < next_) ++unseen;
  }
  for (; unseen > 0 && head_ < queue_.size(); --unseen) take();
  prefetch(actions);
  ++next_;
  return actions;
}

TensorId ParameterCoordinator::take() {
  const Queued& queued = queue_[head_++];
  at(queued.tensor).looked_at = std::max(at(queued.tensor).looked_at, queued.use);
  return queued.tensor;
}

void ParameterCoordinator::prefetch(std::vector<GatherAction>& actions) {
  const std::int64_t most = std::min(z_.zero.max_live_parameters - available_,
                                     z_.zero.prefetch_bucket_size);
  std::vector<TensorId> ahead;
  for (std::int64_t elements = 0; head_ < queue_.size() && elements < most;) {
    const TensorId t = take();
    if (at(t).status != Status::away || std::find(ahead.begin(), ahead.end(), t) != ahead.end())
      continue;
    ahead.push_back(t);
    at(t).wanted = queue_[head_ - 1].use;
    elements += parameter(t).numel;
  }
  gather(std::move(ahead), actions);
}

bool ParameterCoordinator::has_secondary(TensorId t) const {
  return z_.secondary.exist() && (!first_ || !parameter(t).trainable || is_divided(t));
}

/// Trainable parameters and frozen ones go in calls of their own where some are quantized at rest
/// or have secondary shards already (__all_gather_params), and so do those of other groups of ranks
/// (all_gather_coalesced).
bool ParameterCoordinator::same_call(TensorId a, TensorId b) const {
  const Parameter &p = parameter(a), &q = parameter(b);
  const bool alike = !z_.zero.quantized_nontrainable_weights || p.trainable == q.trainable;
  return alike && has_secondary(a) == has_secondary(b) && z_.e.ranks_of(p) == z_.e.ranks_of(q);
}

std::vector<GatherBucket> ParameterCoordinator::calls(std::vector<TensorId> tensors) const {
  std::vector<GatherBucket> calls;
  std::sort(tensors.begin(), tensors.end());
  while (!tensors.empty()) {
    const TensorId first = tensors.front();
    const auto others =
        std::stable_partition(tensors.begin(), tensors.end(),
                              [&](TensorId t) { return same_call(first, t); });
    GatherBucket& bucket = calls.emplace_back();
    bucket.tensors.assign(tensors.begin(), others);
    bucket.awaited = others - tensors.begin();
    bucket.call.set.stored = !parameter(first).trainable && z_.zero.quantized_nontrainable_weights;
    bucket.call.set.secondary = has_secondary(first);
    for (const TensorId t : bucket.tensors) {
      bucket.call.set.ids.push_back(tensors_.parameter(t));
      bucket.call.for_backward.push_back(for_backward(t));
    }
    tensors.erase(tensors.begin(), others);
  }
  return calls;
}

void ParameterCoordinator::gather(std::vector<TensorId> tensors,
                                  std::vector<GatherAction>& actions) {
  for (GatherBucket& bucket : calls(std::move(tensors))) {
    for (const TensorId t : bucket.tensors) {
      at(t).status = Status::in_flight;
      at(t).bucket = buckets_.size();
      available_ += parameter(t).numel;
    }
    actions.push_back({GatherAction::Kind::gather, buckets_.size()});
    buckets_.push_back(std::move(bucket));
  }
}

void ParameterCoordinator::wait_for(TensorId t, std::vector<GatherAction>& actions) {
  GatherBucket& bucket = buckets_[at(t).bucket];
  if (at(t).status != Status::in_flight) return;
  at(t).status = Status::there;
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
  const auto again = std::lower_bound(tensor.uses.begin(), tensor.uses.end(), next_);
  if (again == tensor.uses.end()) return false;
  return before_[static_cast<std::size_t>(*again)] - before_[static_cast<std::size_t>(next_)] <
         z_.zero.max_reuse_distance;
}

std::vector<TensorId> ParameterCoordinator::release(ModuleId id, std::int64_t layer) {
  std::vector<TensorId> gone;
  for (const TensorId t : tensors_of(id, layer)) {
    Tensor& tensor = at(t);
    tensor.users = std::max(tensor.users - 1, 0);
    if (tensor.users > 0 || tensor.status != Status::there || stays(t)) continue;
    tensor.status = Status::away;
    available_ -= parameter(t).numel;
    gone.push_back(t);
  }
  return gone;
}

}  // namespace shardplan
