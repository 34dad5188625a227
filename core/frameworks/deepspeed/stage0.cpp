// ZeRO stage 0: the plain engine (fp32), FP16_Optimizer and FP16_UnfusedOptimizer (fp16 and, since
// 0.17.6, bf16), and BF16_Optimizer, which stage 1 takes with fp32 accumulation.
#include <vector>

#include "frameworks/deepspeed/expert_groups.h"
#include "frameworks/deepspeed/flat_states.h"
#include "frameworks/deepspeed/gradient_work.h"
#include "frameworks/deepspeed/passes.h"
#include "lowering/library_workspaces.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

/// A group of parameters that the optimizer takes at once.
struct OptimizerGroup {
  std::int64_t elements = 0;
  std::vector<Event> casts;    ///< of its gradients, to fp32
  std::int64_t gradients = 0;  ///< bytes
};

/// One group of all parameters, or one of dense ones and those of experts.
std::vector<OptimizerGroup> optimizer_groups(const Model& model, const ExpertGroups& experts,
                                             std::int64_t trainable, std::int64_t gradients) {
  if (!experts.exist())
    return {{trainable, trainable_tensors(model, Category::workspace, 4), gradients}};
  std::vector<OptimizerGroup> groups;
  const auto add = [&](std::int64_t elements) {
    OptimizerGroup group{elements, {}, gradients / trainable * elements};
    append_tensors(group.casts, Category::workspace, 4 * elements, 1);
    groups.push_back(std::move(group));
  };
  add(trainable - experts.elements());
  for (const std::int64_t elements : experts.sizes()) add(elements);
  return groups;
}

/// FP16_Optimizer.step: fp32 casts of every gradient, then their flat copy, while the 16-bit
/// gradients still exist. `gradients`: their bytes.
void emit_fp16_step(ProgramBuilder& b, const Model& model, const Plan& plan, const Engine& e,
                    const ExpertGroups& experts, const std::vector<Updated>& updated,
                    std::int64_t gradients) {
  const std::int64_t psi = e.trainable;
  b.transient(Category::workspace, 4 * e.largest);
  std::int64_t left = gradients;
  const std::vector<OptimizerGroup> groups = optimizer_groups(model, experts, psi, gradients);
  for (const OptimizerGroup& group : groups) {
    emit_allocs(b, group.casts);
    b.alloc(Category::workspace, 4 * group.elements);
    b.free(Category::workspace, total_bytes(group.casts));
    const bool last = &group == &groups.back();
    b.free(Category::gradients, last ? left : group.gradients);
    left -= group.gradients;
  }
  // Tensor-parallel ranks after the first leave replicated parameters out of the norm: zeros,
  // their cumulative sum and a boolean mask of it (runtime/utils.py, get_flattened_grad_norm).
  if (plan.parallel.tensor > 1) b.transient(Category::workspace, (4 + 4 + 1) * psi);
  b.transient(Category::workspace, step_temporaries(e, updated));
  b.free(Category::workspace, 4 * psi);
}

/// FP16_UnfusedOptimizer.step: an fp32 cast of each gradient, which lives until the update is done,
/// as the 16-bit gradients do.
void emit_unfused_step(ProgramBuilder& b, const Model& model, const Engine& e,
                       const ExpertGroups& experts, const std::vector<Updated>& updated,
                       std::int64_t gradients) {
  b.transient(Category::workspace, 4 * e.largest);  // get_weight_norm
  const std::vector<OptimizerGroup> groups =
      optimizer_groups(model, experts, e.trainable, gradients);
  for (const OptimizerGroup& group : groups) emit_allocs(b, group.casts);
  b.transient(Category::workspace, step_temporaries(e, updated));
  for (const OptimizerGroup& group : groups) b.free(Category::workspace, total_bytes(group.casts));
  b.free(Category::gradients, gradients);
}

/// What a step allocates and frees; in fp32 the plain engine's, as PyTorch's own.
void emit_step(ProgramBuilder& b, const Model& model, const Plan& plan, const Engine& e,
               const ExpertGroups& experts, const std::vector<Updated>& updated,
               std::int64_t gradients) {
  if (e.b == 2 && e.unfused) {
    emit_unfused_step(b, model, e, experts, updated, gradients);
  } else if (e.b == 2) {
    emit_fp16_step(b, model, plan, e, experts, updated, gradients);
  } else {
    if (plan.gradient_clipping > 0) b.transient(Category::workspace, clipping_transient(model));
    b.once(1, state_blocks(e, updated));
    b.transient(Category::workspace, step_temporaries(e, updated));
  }
}

/// Gradients are sorted, put together, averaged, and copied back one by one
/// (buffered_allreduce_fallback).
void issue_gradient_copies(ProgramBuilder& b, const Model& model, const Engine& e) {
  const GradientList all{model.tensor_count(), e.trainable};
  b.host_work(Issue::loop, static_cast<std::int32_t>(all.tensors));
  b.compute(flush_kernels(e, {1, e.trainable}));
  b.compute(bucket_copies(e, all));
}

/// The kernels of a step.
void compute_update(ProgramBuilder& b, const Engine& e, const GradientList& all,
                    std::int64_t states) {
  const bool mixed = e.b == 2;
  b.synchronize();  // the host reads the check of each gradient, or the norm
  if (mixed) b.compute(overflow_kernels(e, all));
  if (mixed) b.compute(e.unfused ? apart_gradient_kernels(e, all) : whole_gradient_kernels(e, all));
  b.compute({sweep(2.0 * static_cast<double>((e.m + e.b) * all.elements + states), DType::f32)});
  if (mixed) b.compute(bucket_copies(e, all));  // parameters out of the masters
}

}  // namespace

void add_common_residents(ProgramBuilder& b, const Plan& plan) {
  add_cublas_workspaces(b, plan.cluster.gpu);
  b.resident(Category::other, batch_bytes(plan));
}

void add_pipe_buffers(ProgramBuilder& b, const ModelRun& run, const Engine& engine) {
  if (engine.stage == nullptr) return;
  const StageChunk& chunk = engine.stage->chunks.front();
  b.resident(Category::communication_buffers, input_bytes(run, chunk));
  b.resident(Category::communication_buffers, output_bytes(run, chunk));
  b.resident(Category::other, run.resident_shared);
}

Program lower_stage0(const Model& model, const Plan& plan, const ModelRun& run,
                     const Engine& engine) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Engine& e = engine;
  const bool mixed = e.b == 2;
  const std::int64_t psi = e.trainable;
  const ExpertGroups experts(model, plan);
  b.resident(Category::parameters,
             mixed ? e.b * psi + e.frozen_bytes : parameter_bytes(model, plan));
  b.resident(Category::parameters, experts.replaced_bytes(plan, e.b));
  add_common_residents(b, plan);
  add_pipe_buffers(b, run, e);
  if (mixed) b.resident(Category::master_parameters, e.m * psi);
  program.model_bytes = total_bytes(program.resident);
  const std::vector<Updated> updated = whole_tensors(model);
  const StateBytes states = states_of(e, updated);
  add_states(program, e, states);
  // FP16_Optimizer runs a step of zero gradients when it is built (initialize_optimizer_states).
  if (mixed) program.model_bytes += states.resident;

  // engine.py buffered_allreduce_fallback: gradients are gathered into copies of at most 5e8
  // elements and one tensor; it runs even with one rank.
  // Experts' go after the others, among those who have the same.
  constexpr std::int64_t kAllReduceElements = 500'000'000;
  const std::int64_t dense = psi - experts.elements();
  const std::int64_t copied =
      std::min(std::max(dense, experts.elements()), kAllReduceElements + e.largest);
  emit_passes(
      b, model, plan, run, e, [] {},
      [&] {
        issue_gradient_copies(b, model, e);
        b.alloc(Category::communication_buffers, e.b * copied);
        if (e.c != e.b) b.transient(Category::communication_buffers, e.c * copied);
        if (e.ranks > 1)
          b.collective(Collective::all_reduce, e.c * dense, "gradient all-reduce",
                       ceil_div(dense, kAllReduceElements));
        if (experts.ranks() > 1)
          b.collective(Collective::all_reduce, e.c * experts.elements(), "gradient all-reduce",
                       ceil_div(experts.elements(), kAllReduceElements), Group::expert_data);
        b.wait(Stream::communication);
        b.free(Category::communication_buffers, e.b * copied);
      });

  const std::int64_t gradients =
      run.segments.empty() ? e.b * psi
                           : trainable_bytes(model, plan.precision.params, plan.precision.params);
  b.begin_phase(Phase::step);
  emit_step(b, model, plan, e, experts, updated, gradients);
  compute_update(b, e, {trainable_tensors(model), psi}, states.total());
  if (!mixed) b.free(Category::gradients, gradients);
  b.end_phase(Phase::step);
  return program;
}

Program lower_bf16_optimizer(const Model& model, const Plan& plan, const ModelRun& run,
                             const Engine& engine) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Engine& e = engine;
  const FlatLayout layout(model, e.ranks);
  const std::int64_t a = layout.padded(), p = layout.partition();
  b.resident(Category::parameters, e.b * a + e.frozen_bytes);
  add_common_residents(b, plan);
  add_pipe_buffers(b, run, e);
  b.resident(Category::master_parameters, e.m * p);
  b.resident(Category::gradients, e.g * a);  // the accumulation buffer is whole on every rank
  program.model_bytes = total_bytes(program.resident);
  const std::vector<Updated> updated = partitions_of(model, e, 0, {p}, false);
  const StateBytes states = states_of(e, updated);
  add_states(program, e, states);

  const GradientList all{trainable_tensors(model), e.trainable};
  const auto accumulate = [&] {  // by hooks, as gradients come
    b.host_work(Issue::bucket, static_cast<std::int32_t>(ceil_div(all.tensors, 3)));
    b.compute(accumulation_kernels(e, all));
  };
  emit_passes(b, model, plan, run, e, accumulate, [&] {
    if (e.c != e.g) b.transient(Category::communication_buffers, e.c * a);
    if (e.ranks > 1) b.collective(Collective::all_reduce, e.c * a, "gradient all-reduce");
    b.wait(Stream::communication);
  });

  const std::int64_t gradients =
      run.segments.empty() ? e.b * e.trainable
                           : trainable_bytes(model, plan.precision.params, plan.precision.params);
  b.begin_phase(Phase::step);
  b.once(1, state_blocks(e, updated));  // _lazy_init_hp_params_optimizer_state
  b.transient(Category::workspace, step_temporaries(e, updated));
  const GradientList own{ceil_div(trainable_tensors(model), e.ranks), p};
  b.compute(fp32_gradient_kernels(own));
  b.synchronize();  // the norm is read by the host
  b.compute({sweep(2.0 * static_cast<double>((e.m + e.g) * p + states.total()), DType::f32)});
  b.compute(parameter_casts(e, own));
  if (e.ranks > 1) b.collective(Collective::all_gather, e.b * a, "parameter all-gather");
  b.wait(Stream::communication);
  b.free(Category::gradients, gradients);
  b.end_phase(Phase::step);
  return program;
}

}  // namespace shardplan
