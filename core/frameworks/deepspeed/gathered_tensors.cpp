#include "frameworks/deepspeed/gathered_tensors.h"

namespace shardplan {

GatheredTensors::GatheredTensors(const Stage3& z, const GatherSchedule& schedule)
    : z_(z),
      schedule_(schedule),
      later_steps_(z, GatheredBlocks::Steps::later),
      first_step_(z, GatheredBlocks::Steps::first),
      users_(z.model.parameters.size(), 0) {}

void GatheredTensors::begin_pass(ProgramBuilder& b, bool backward) {
  backward_ = backward;
  act(b, schedule_.opening(backward));
}

void GatheredTensors::act(ProgramBuilder& b, std::span<const GatherAction> actions) {
  for (const GatherAction& action : actions) {
    schedule_.describe(action.bucket, call_);
    switch (action.kind) {
      case GatherAction::Kind::gather:
        later_steps_.gather(call_);
        break;
      case GatherAction::Kind::arrive:
        later_steps_.arrive(call_);
        break;
      case GatherAction::Kind::settle:
        later_steps_.settle(call_);
        break;
    }
  }
  later_steps_.put(b);
}

void GatheredTensors::use(ProgramBuilder& b, ModuleId id, const ModuleGathers& gathers) {
  use_in_first_step(b, id);
  act(b, gathers.actions.first(gathers.ahead));
}

void GatheredTensors::gather_ahead(ProgramBuilder& b, const ModuleGathers& gathers) {
  act(b, gathers.actions.subspan(gathers.ahead));
}

/// As ParameterCoordinator::same_call does.
bool GatheredTensors::splits_calls() const {
  return z_.secondary.exist() || z_.zero.quantized_nontrainable_weights;
}

void GatheredTensors::describe(ModuleId id, bool frozen, GatherCall& call) const {
  call.set.ids.clear();
  call.for_backward.clear();
  call.set.stored = frozen && z_.zero.quantized_nontrainable_weights;
  call.set.secondary = z_.secondary.exist() && (frozen || backward_);
  for (const ParameterId p : z_.model.modules[static_cast<std::size_t>(id)].parameters) {
    const bool trains = z_.model.parameters[static_cast<std::size_t>(p)].trainable;
    if (z_.gather.persistent(p) || users_[static_cast<std::size_t>(p)] > 0) continue;
    if (splits_calls() && trains == frozen) continue;
    call.set.ids.push_back(p);
    call.for_backward.push_back(backward_);
  }
}

/// A module's use gathers what is not there, and its end lets all of it go.
void GatheredTensors::use_in_first_step(ProgramBuilder& b, ModuleId id) {
  for (const bool frozen : {false, true}) {
    if (frozen && !splits_calls()) continue;
    describe(id, frozen, call_);
    if (call_.set.ids.empty()) continue;
    first_step_.gather(call_);
    first_step_.arrive(call_);
    first_step_.settle(call_);
  }
  for (const ParameterId p : z_.model.modules[static_cast<std::size_t>(id)].parameters)
    ++users_[static_cast<std::size_t>(p)];
  first_step_.put(b);
}

void GatheredTensors::release_in_first_step(ProgramBuilder& b, ModuleId id) {
  for (const ParameterId p : z_.model.modules[static_cast<std::size_t>(id)].parameters) {
    std::int32_t& users = users_[static_cast<std::size_t>(p)];
    if (users > 0 && --users == 0 && !z_.gather.persistent(p))
      first_step_.release({.id = p, .for_backward = backward_}, backward_);
  }
  first_step_.put(b);
}

void GatheredTensors::release(ProgramBuilder& b, ModuleId id, const ModuleGathers& gathers) {
  release_in_first_step(b, id);
  for (const ReleasedTensor& t : gathers.gone) later_steps_.release(t, backward_);
  later_steps_.put(b);
  for (const ReleasedTensor& t : gathers.gone)
    if (t.divides) leave_secondary(b, t.id);
}

void GatheredTensors::leave_secondary(ProgramBuilder& b, ParameterId id) const {
  const std::int64_t bytes = z_.secondary.bytes_of(id);
  if (z_.secondary.on_host())
    b.copy(LinkKind::host, false, bytes, "secondary shards to the host");
  else
    b.alloc(Category::parameters, bytes);
}

void GatheredTensors::finish(ProgramBuilder& b) {
  first_step_.drop_held();
  first_step_.put(b);
  later_steps_.drop_held();
  later_steps_.put(b);
}

}  // namespace shardplan
