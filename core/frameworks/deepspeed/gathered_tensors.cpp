#include "frameworks/deepspeed/gathered_tensors.h"

namespace shardplan {

GatheredTensors::GatheredTensors(const Stage3& z, const std::vector<ModuleUse>& order, bool first)
    : z_(z),
      first_(first),
      coordinator_(z, order, first),
      later_steps_(z, coordinator_.tensors(), GatheredBlocks::Steps::later),
      first_step_(z, coordinator_.tensors(), GatheredBlocks::Steps::first),
      fresh_(static_cast<std::size_t>(coordinator_.tensors().size()), false),
      users_(fresh_.size(), 0) {}

void GatheredTensors::begin_pass(ProgramBuilder& b, bool backward) {
  if (!z_.gather.gathers()) return;
  if (backward) {
    later_steps_.turn();
    first_step_.turn();
  }
  act(b, coordinator_.begin_pass());
}

void GatheredTensors::act(ProgramBuilder& b, const std::vector<GatherAction>& actions) {
  for (const GatherAction& action : actions) {
    const GatherBucket& bucket = coordinator_.bucket(action.bucket);
    switch (action.kind) {
      case GatherAction::Kind::gather:
        later_steps_.gather(bucket, action.bucket);
        for (const TensorId t : bucket.tensors) fresh_[static_cast<std::size_t>(t)] = true;
        break;
      case GatherAction::Kind::arrive:
        later_steps_.arrive(bucket, action.bucket);
        break;
      case GatherAction::Kind::settle:
        later_steps_.settle(bucket, action.bucket);
        break;
    }
  }
  later_steps_.put(b);
}

std::vector<GatherBucket> GatheredTensors::use(ProgramBuilder& b, ModuleId id, std::int64_t layer) {
  const std::vector<TensorId> tensors = coordinator_.tensors_of(id, layer);
  use_in_first_step(b, tensors);
  act(b, coordinator_.use());
  std::vector<TensorId> gathered;
  for (const TensorId t : tensors) {
    if (fresh_[static_cast<std::size_t>(t)]) gathered.push_back(t);
    fresh_[static_cast<std::size_t>(t)] = false;
  }
  return coordinator_.calls(std::move(gathered));
}

/// A module's use gathers what is not there, and its end lets all of it go.
void GatheredTensors::use_in_first_step(ProgramBuilder& b, const std::vector<TensorId>& tensors) {
  std::vector<TensorId> away;
  for (const TensorId t : tensors)
    if (users_[static_cast<std::size_t>(t)]++ == 0) away.push_back(t);
  for (const GatherBucket& call : coordinator_.calls(std::move(away))) {
    first_step_.gather(call, 0);
    first_step_.arrive(call, 0);
    first_step_.settle(call, 0);
  }
  first_step_.put(b);
}

void GatheredTensors::release_in_first_step(ProgramBuilder& b,
                                            const std::vector<TensorId>& tensors) {
  std::vector<TensorId> gone;
  for (const TensorId t : tensors) {
    std::int32_t& users = users_[static_cast<std::size_t>(t)];
    if (users > 0 && --users == 0) gone.push_back(t);
  }
  first_step_.release(gone);
  first_step_.put(b);
}

void GatheredTensors::release(ProgramBuilder& b, ModuleId id, std::int64_t layer) {
  release_in_first_step(b, coordinator_.tensors_of(id, layer));
  const std::vector<TensorId> gone = coordinator_.release(id, layer);
  later_steps_.release(gone);
  later_steps_.put(b);
  for (const TensorId t : gone) leave_secondary(b, t);
}

/// The first release of a tensor since the step leaves its secondary shard.
void GatheredTensors::leave_secondary(ProgramBuilder& b, TensorId t) {
  const ParameterId id = coordinator_.tensors().parameter(t);
  if (!first_ || !z_.secondary.follows(id) || coordinator_.is_divided(t)) return;
  coordinator_.divided(t);
  const std::int64_t bytes = z_.secondary.bytes_of(id);
  if (z_.secondary.on_host())
    b.copy(LinkKind::host, false, bytes, "secondary shards to the host");
  else
    b.alloc(Category::parameters, bytes);
}

void GatheredTensors::finish(ProgramBuilder& b) {
  first_step_.finish();
  first_step_.put(b);
  later_steps_.finish();
  later_steps_.put(b);
}

}  // namespace shardplan
