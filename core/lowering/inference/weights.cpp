#include "lowering/inference/weights.h"

#include <algorithm>

#include "frameworks/deepspeed/coordinator.h"
#include "frameworks/deepspeed/flat_states.h"
#include "frameworks/deepspeed/layout.h"
#include "frameworks/deepspeed/stage3_calls.h"
#include "frameworks/deepspeed/stages.h"
#include "frameworks/registry.h"
#include "lowering/tensors.h"

namespace shardplan {

FrozenWeights::FrozenWeights(const Model& model, const Plan& plan, const ModelRun& run)
    : model_(model), plan_(plan), held_(model.modules.size(), 0) {
  if (!is_zero3(plan)) return;
  engine_ = engine_of(model, plan);
  gather_.emplace(model_, plan_, run, engine_);
  if (!gather_->gathers()) gather_.reset();
  if (gather_) ahead_ = most_ahead(run);
}

/// DeepSpeed's coordinator over one pass: each is a step of its own, with no backward pass that
/// anything would stay for.
std::int64_t FrozenWeights::most_ahead(const ModelRun& run) const {
  const SecondaryShards secondary(model_, plan_, run, *gather_);
  const std::vector<ModuleEvent> order = forward_order(model_, run);
  ParameterCoordinator coordinator(
      {model_, plan_.framework.deepspeed.zero, engine_, *gather_, secondary}, order, {}, false);
  std::int64_t held = 0, most = 0;
  const auto act = [&](std::span<const GatherAction> actions) {
    GatherCall call;
    for (const GatherAction& action : actions) {
      coordinator.describe(action.bucket, call);
      const std::int64_t received = gather_->bytes_of(call.set).received;
      if (action.kind == GatherAction::Kind::settle) held -= received;
      if (action.kind != GatherAction::Kind::gather) continue;
      held += received;
      for (const ParameterId p : call.set.ids) held += gather_->gathered_bytes(p);
    }
  };
  std::vector<GatherAction> actions;
  for (const ModuleEvent& event : order) {
    actions.clear();
    if (event.begins_pass) coordinator.begin_pass(actions);
    if (event.release) {
      for (const TensorId t : coordinator.release(event))
        held -= gather_->gathered_bytes(coordinator.tensors().parameter(t));
      continue;
    }
    coordinator.use(actions);
    act(actions);
    most = std::max(most, held - missing_bytes(event.module));
  }
  return most;
}

void FrozenWeights::add_residents(Program& program) const {
  if (!gather_) {
    append_parameters(program.resident, model_, plan_);
    return;
  }
  const ShardLayout layout = shard_layout(model_, engine_.ranks);
  if (plan_.framework.deepspeed.zero.offload_param.device == OffloadDevice::none)
    append_tensors(program.resident, Category::parameters,
                   checked_mul(engine_.b, checked_add(layout.trainable, layout.frozen)), 1);
  append_tensors(program.resident, Category::gathered_parameters, gather_->persistent_bytes(), 1);
  const std::int64_t states =
      states_of(engine_, shards_of(model_, engine_, layout.trainable)).total();
  const HostMemory host = offloaded_stage3(model_, plan_, engine_, layout, 0, states);
  program.host.pageable += host.pageable;
  program.host.pinned += host.pinned;
  program.host.nvme += host.nvme;
}

void FrozenWeights::begin_pass(ProgramBuilder& b) const {
  if (gather_) b.alloc(Category::gathered_parameters, ahead_);
}

void FrozenWeights::end_pass(ProgramBuilder& b) const {
  if (gather_) b.free(Category::gathered_parameters, ahead_);
}

std::int64_t FrozenWeights::missing_bytes(ModuleId id) const {
  std::int64_t bytes = 0;
  for (const ParameterId p : model_.modules[static_cast<std::size_t>(id)].parameters)
    if (!gather_->persistent(p)) bytes += gather_->gathered_bytes(p);
  return bytes;
}

void FrozenWeights::fetch(ProgramBuilder& b, ModuleId id) {
  auto& held = held_[static_cast<std::size_t>(id)];
  if (!gather_ || held > 0) return;
  const std::int64_t bytes = missing_bytes(id);
  if (bytes == 0) return;
  const bool several = model_.modules[static_cast<std::size_t>(id)].parameters.size() > 1;
  held = (several ? gather_->coalesced_factor() : 1) * bytes;
  b.alloc(Category::gathered_parameters, held);
  b.host_work(Issue::engine, kModuleCalls + kGatherCalls);
  const OffloadDevice device = plan_.framework.deepspeed.zero.offload_param.device;
  if (device != OffloadDevice::none)
    b.fetch_ahead(device == OffloadDevice::nvme ? LinkKind::nvme : LinkKind::host,
                  ceil_div(bytes, engine_.ranks), "weights to the GPU");
  if (engine_.ranks == 1) {
    b.wait(Stream::copy);
    return;
  }
  b.gather_ahead(bytes, "parameter all-gather");
  b.wait(Stream::communication);
}

void FrozenWeights::release(ProgramBuilder& b, ModuleId id) {
  auto& held = held_[static_cast<std::size_t>(id)];
  if (held == 0) return;
  b.free(Category::gathered_parameters, held);
  held = 0;
}

}  // namespace shardplan
