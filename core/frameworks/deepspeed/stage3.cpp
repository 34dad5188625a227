// ZeRO stage 3: DeepSpeedZeroOptimizer_Stage3 (deepspeed/runtime/zero/stage3.py,
// partition_parameters.py, partitioned_param_coordinator.py).
#include <algorithm>
#include <optional>

#include "frameworks/deepspeed/expert_groups.h"
#include "frameworks/deepspeed/flat_states.h"
#include "frameworks/deepspeed/gather_hooks.h"
#include "lowering/library_workspaces.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/packed_weights.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

/// `last`: of the step's micro-batches.
void emit_micro_batch(ProgramBuilder& b, const Stage3& z, const GatherSchedule& schedule,
                      bool last) {
  GatheredTensors gathered(z, schedule);
  GatherHooks ahead(z, schedule, false, gathered);
  b.begin_phase(Phase::forward);
  gathered.begin_pass(b, false);
  emit_forward(b, z.model, z.run, schedule.repeats(false), ahead);
  b.end_phase(Phase::forward);

  GatherHooks back(z, schedule, true, gathered);
  b.begin_phase(Phase::backward);
  // The model's own pre-backward hook prefetches before the loss is differentiated.
  gathered.begin_pass(b, true);
  emit_backward(b, z.model, z.run, schedule.repeats(true), back);
  z.flush(b, z.later_flush());
  z.offload_last(b);
  z.reduce(b, last);
  if (z.offload_optimizer)
    b.copy(LinkKind::host, false, z.e.g * z.layout.trainable, "gradient shards to the host");
  gathered.finish(b);
  b.end_phase(Phase::backward);
}

/// A sub-group's gradients are put together, and widened; the optimizer makes its states when it
/// runs first (_prepare_sub_group, _optimizer_step, _release_sub_group).
void update(ProgramBuilder& b, const Engine& e, const Updated& group) {
  const std::int64_t flat = checked_mul(e.g, group.numel);
  const std::int64_t wide = e.g == 4 ? 0 : checked_mul(4, group.numel);
  b.alloc(Category::workspace, flat);
  b.alloc(Category::workspace, wide);
  b.free(Category::workspace, wide > 0 ? flat : 0);
  b.once(1, state_blocks(e, {group}));
  b.transient(Category::workspace, step_temporaries(e, {group}));
  b.free(Category::workspace, wide > 0 ? wide : flat);
}

void emit_step(ProgramBuilder& b, const Stage3& z) {
  const Engine& e = z.e;
  const std::int64_t p = z.layout.trainable;
  b.begin_phase(Phase::step);
  b.free(Category::gathered_parameters, z.gather.persistent_bytes());
  const bool secondary = z.secondary.exist() && !z.secondary.on_host();
  if (secondary) b.alloc(Category::parameters, z.secondary.late_bytes());
  if (!z.offload_optimizer) {
    if (z.plan.precision.params == DType::f16) b.transient(Category::workspace, (1 + e.g) * p);
    b.transient(Category::workspace, 8 * z.layout.largest);  // the norm is taken in double
    for (const Updated& group : z.sub_groups) update(b, e, group);
    b.synchronize();  // the norm is read by the host
    b.compute(special_kernels(z.model, e));
    b.compute({sweep(2.0 * static_cast<double>((e.m + e.g) * p + z.states.total()), DType::f32)});
  } else {
    // Gradients are on the host, and so is their norm.
    const bool nvme = z.zero.offload_optimizer.device == OffloadDevice::nvme;
    b.copy(LinkKind::host, false, 4 * p, "fp32 gradients to the host");
    if (nvme) {
      b.copy(LinkKind::nvme, false, 4 * p, "gradients to NVMe");
      b.copy(LinkKind::nvme, true, 2 * 4 * p + z.states.total(), "optimizer states from NVMe");
    }
    update_on_host(b, z.plan, e, p);
    if (nvme) b.copy(LinkKind::nvme, false, 4 * p + z.states.total(), "optimizer states to NVMe");
    b.copy(LinkKind::host, true, e.b * p, "updated parameters from the host");
  }
  if (e.ranks > 1 && z.gather.persistent_bytes() > 0)
    b.collective(Collective::all_gather, z.gather.persistent_bytes(),
                 "persistent parameter all-gather", 1, z.group);
  const std::int64_t gathered = z.gather.persistent_bytes();
  b.alloc(Category::gathered_parameters, gathered);
  b.transient(Category::gathered_parameters, (z.gather.coalesced_factor() - 1) * gathered);
  if (secondary) b.free(Category::parameters, z.secondary.trainable_bytes());
  b.end_phase(Phase::step);
}

/// Masters, a block per sub-group. The parameters of each are converted, and the result is copied:
/// a conversion goes when the next one is there (_create_fp32_partitions). Then gradients of zeros
/// for the largest sub-group, which go again (initialize_optimizer_states).
void append_masters(std::vector<Event>& build, const Stage3& z) {
  std::int64_t converted = 0;
  const auto convert = [&](std::int64_t bytes) {
    if (bytes > 0) append_tensors(build, Category::workspace, bytes, 1);
    if (converted > 0) {
      append_tensors(build, Category::workspace, converted, 1);
      build.back().kind = Event::Kind::free;
    }
    converted = bytes;
  };
  for (const Updated& group : z.sub_groups) {
    convert(checked_mul(z.e.m, group.numel));
    append_tensors(build, Category::master_parameters, checked_mul(z.e.m, group.numel), 1);
  }
  convert(0);
  convert(checked_mul(z.e.m > 0 ? z.e.m : z.e.b, z.sub_group));
  convert(0);
}

/// What is there before a step, and how building makes it.
void add_residents(Program& program, const Stage3& z, const PackedWeights& packed) {
  ProgramBuilder b(program);
  const Engine& e = z.e;
  const std::int64_t p = z.layout.trainable;
  if (!z.offload_param)
    b.resident(Category::parameters, checked_add(checked_mul(e.b, p), z.frozen_bytes()));
  packed.append_whole_parts(program.resident);
  b.resident(Category::parameters, ExpertGroups(z.model, z.plan).replaced_bytes(z.plan, e.b));
  if (z.secondary.exist() && !z.secondary.on_host())
    b.resident(Category::parameters, z.secondary.frozen_bytes());
  add_common_residents(b, z.plan);
  program.build = program.resident;
  make_workspaces_in_first_step(b, program.build, z.run);
  if (!z.offload_optimizer) {
    for (const Updated& group : z.sub_groups)
      b.resident(Category::master_parameters, checked_mul(e.m, group.numel));
    append_masters(program.build, z);
  }
  const auto masters_end = static_cast<std::ptrdiff_t>(program.resident.size());
  b.resident(Category::communication_buffers,
             z.zero.contiguous_gradients
                 ? checked_mul(e.c * e.communication_dtypes, z.zero.reduce_bucket_size)
                 : 0);
  if (!z.offload_optimizer) b.resident(Category::gradients, e.g * p);
  program.model_bytes = total_bytes(program.resident);
  if (z.secondary.exist() && !z.secondary.on_host())  // dividing the model makes them all
    program.model_bytes += z.secondary.trainable_bytes();
  b.resident(Category::communication_buffers, z.hops.feedback);
  b.resident(Category::gathered_parameters, z.gather.persistent_bytes());
  program.build.insert(program.build.end(), program.resident.begin() + masters_end,
                       program.resident.end());
  if (!z.offload_optimizer) add_states(program, e, z.states);
}

}  // namespace

Program lower_stage3(const Model& whole, const Plan& plan, const ModelRun& run,
                     const Engine& engine) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const PackedWeights packed(whole, parameter_type(plan));
  const Model& model = packed.model();
  const Stage3 z(model, plan, run, engine);
  add_residents(program, z, packed);
  if (z.offload_optimizer || z.offload_param) {
    program.host = offloaded_stage3(model, plan, engine, z.layout, z.sub_group, z.states.total());
    if (z.secondary.on_host()) program.host.pinned += z.secondary.pinned_bytes();
  }

  const GatherSchedule later = gather_schedule(z, false);
  const std::int64_t count = plan.workload.gradient_accumulation;
  if (z.distinct_micro_batches()) {
    std::optional<GatherSchedule> first;
    if (z.secondary.exist()) first.emplace(gather_schedule(z, true));
    emit_micro_batches(b, count, [&](bool last) {
      emit_micro_batch(b, z, first ? *first : later, last);
      first.reset();
    });
  } else {  // gradients accumulate in the flat buffer
    const std::int64_t alone = makes_workspace_late(run) && count > 1 ? 1 : 0;
    if (alone > 0) emit_micro_batch(b, z, later, true);
    b.begin_repeat(count - alone);
    emit_micro_batch(b, z, later, true);
    b.end_repeat();
  }
  emit_step(b, z);
  return program;
}

}  // namespace shardplan
