// Plain PyTorch on one GPU, and DistributedDataParallel with or without ZeroRedundancyOptimizer.
#include "lowering/lower.h"
#include "lowering/micro_batches.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

/// Gradients live in tensors of their own, or as views into DDP's buckets.
struct Hooks {
  bool views = false;
  std::vector<bool> present;  ///< by parameter

  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    // A second gradient (accumulation, tied weights) is added in place; a view is copied into.
    const auto seen = present[static_cast<std::size_t>(id)];
    if (views || seen) {
      b.transient(Category::gradients, bytes);
    } else {
      b.alloc(Category::gradients, bytes);
    }
    present[static_cast<std::size_t>(id)] = true;
  }
};

}  // namespace

Program lower_data_parallel(const Model& model, const Plan& plan, const ModelRun& run) {
  Program program;
  ProgramBuilder b(program);
  const Precision& precision = plan.precision;
  const bool ddp = plan.framework.kind == FrameworkKind::ddp;
  const DdpOptions& options = plan.framework.ddp;
  const std::int64_t world = plan.cluster.world();
  const std::int64_t gradients = trainable_bytes(model, precision.gradients);
  const std::int64_t parameters = parameter_bytes(model, plan);
  const bool sharded_optimizer = ddp && options.zero_redundancy_optimizer;

  b.resident(Category::parameters, parameters);
  b.resident(Category::workspace, cublas_workspaces(plan.cluster.gpu));
  b.resident(Category::other, batch_bytes(plan));
  const bool views = ddp && options.gradient_as_bucket_view;
  if (ddp) b.resident(views ? Category::gradients : Category::communication_buffers, gradients);
  for (const Event& e : program.resident) program.model_bytes += e.bytes;

  OptimizerMemory optimizer = optimizer_memory(model, plan.optimizer, precision.optimizer_states);
  std::int64_t master = precision.master ? trainable_bytes(model, *precision.master) : 0;
  if (sharded_optimizer) {
    // Parameters go to the rank with the fewest elements so far: close to an even split
    // (torch/distributed/optim/zero_redundancy_optimizer.py).
    optimizer.states = ceil_div(optimizer.states, world);
    optimizer.step_transient = ceil_div(optimizer.step_transient, world);
    master = ceil_div(master, world);
  }
  b.resident(Category::optimizer_states, optimizer.states);
  // torch.optim.Adagrad makes its states when it is constructed; the others at the first step.
  if (plan.optimizer.kind == OptimizerKind::adagrad) program.model_bytes += optimizer.states;
  b.resident(Category::master_parameters, master);

  Hooks hooks{views, std::vector<bool>(model.parameters.size(), false)};
  const std::vector<Stretch> forward = whole_segments(run);
  const std::vector<Stretch> backward(forward.rbegin(), forward.rend());
  emit_micro_batches(b, plan.workload.gradient_accumulation, [&](bool last) {
    b.begin_phase(Phase::forward);
    emit_forward(b, model, run, forward, hooks);
    b.end_phase(Phase::forward);
    b.begin_phase(Phase::backward);
    emit_backward(b, model, run, backward, hooks);
    // A model without a graph (a list of tensors) still has gradients.
    if (run.segments.empty() && last && !views) b.alloc(Category::gradients, gradients);
    if (ddp && last)  // accumulation runs under no_sync
      b.collective(Collective::all_reduce, gradients, "gradient all-reduce",
                   ceil_div(gradients, options.bucket_cap_bytes));
    b.end_phase(Phase::backward);
  });

  b.begin_phase(Phase::step);
  if (plan.gradient_clipping > 0) b.transient(Category::workspace, clipping_transient(model));
  b.transient(Category::workspace, optimizer.step_transient);
  // The optimizer reads and writes every state, master and gradient once.
  b.compute(0, 2.0 * static_cast<double>(optimizer.states + master + parameters + gradients), 1);
  if (master > 0)  // gradients are widened tensor by tensor
    b.transient(Category::workspace,
                round_up(checked_mul(largest_trainable(model), 4), kAllocationUnit));
  if (sharded_optimizer)
    b.collective(Collective::broadcast, parameters, "parameter broadcast", world);
  if (!views) b.free(Category::gradients, gradients);
  b.end_phase(Phase::step);
  return program;
}

}  // namespace shardplan
