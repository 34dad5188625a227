#include "lowering/inference/injected.h"

#include <algorithm>

#include "lowering/inference/workspace.h"
#include "lowering/library_workspaces.h"
#include "lowering/stored_weights.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

/// The kernels of a pass as they are without injection, each on 1/tp of the heads and columns: its
/// tensors are inside the workspace.
void emit_kernels(ProgramBuilder& b, const ModelRun& run, std::int64_t hidden_bytes,
                  std::int64_t tensor_parallel) {
  for (const SegmentRun& s : run.segments) {
    std::vector<Kernel> kernels = s.forward.forward_kernels;
    for (Kernel& k : kernels)
      if (k.kind == KernelKind::product && s.segment->checkpointable)
        k.n = std::max<std::int64_t>(1, k.n / tensor_parallel);
    b.begin_repeat(s.segment->repeat);
    b.compute(kernels);
    if (tensor_parallel > 1 && s.segment->checkpointable)
      b.collective(Collective::all_reduce, 2 * hidden_bytes, "activation all-reduce", 2);
    if (tensor_parallel > 1) b.wait(Stream::communication);
    b.end_repeat();
  }
}

}  // namespace

std::int64_t injected_weight_bytes(const Model& model, const Plan& plan) {
  const KernelInjection& injection = *plan.workload.generation.injection;
  std::int64_t sum = 0;
  for (const ParameterGroup& group : model.groups)
    for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
      const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
      const bool cut = p.kind == ParameterKind::linear && group.repeat > 1;
      const std::int64_t whole =
          stored_bytes(p, plan.precision.params, plan.workload.generation.weights);
      sum = checked_add(
          sum, checked_mul(cut ? ceil_div(whole, injection.tensor_parallel) : whole, group.repeat));
    }
  return sum;
}

Program lower_injected_pass(const Model& model, const Plan& plan, const Pass& pass,
                            const Pass* before) {
  Program program;
  ProgramBuilder b(program);
  const std::int64_t hidden =
      checked_mul(checked_mul(plan.workload.micro_batch, pass.tokens), model.facts.hidden);
  emit_kernels(b, run_pass(model, plan, pass, before),
               checked_mul(hidden, size_of(plan.precision.params)),
               plan.workload.generation.injection->tensor_parallel);
  return program;
}

Program lower_injected(const Model& model, const Plan& plan) {
  Program program;
  ProgramBuilder b(program);
  const Workload& w = plan.workload;
  const KernelInjection& injection = *w.generation.injection;
  const std::int64_t weights = injected_weight_bytes(model, plan);
  const DType type = plan.precision.params;
  b.resident(Category::workspace, cublas_workspace(plan.cluster.gpu));
  b.resident(Category::parameters, weights);
  b.resident(Category::other, batch_bytes(plan));
  program.model_bytes = total_bytes(program.resident);
  const std::int64_t free = plan.cluster.gpu.usable.count() - program.model_bytes;
  const InferenceWorkspace workspace = deepspeed_workspace(
      model.facts, w.micro_batch, injection.max_out_tokens, injection.tensor_parallel, type, free);
  const std::int64_t logits =
      checked_mul(checked_mul(w.micro_batch, model.facts.vocabulary), size_of(type));
  const std::int64_t row = checked_mul(w.micro_batch * model.facts.hidden, size_of(type));
  const Pass prompt{w.sequence_length, 0};
  const Pass last{1, w.sequence_length + w.generation.new_tokens - 1};
  b.begin_phase(Phase::prefill);
  b.alloc(Category::workspace, workspace.bytes);
  b.alloc(Category::logits_and_loss, logits);
  emit_kernels(b, run_pass(model, plan, prompt, nullptr), checked_mul(row, w.sequence_length),
               injection.tensor_parallel);
  b.synchronize();  // the first token is looked at
  b.end_phase(Phase::prefill);
  b.begin_phase(Phase::decode);
  b.transient(Category::logits_and_loss, logits);
  emit_kernels(b, run_pass(model, plan, last, &prompt), row, injection.tensor_parallel);
  b.end_phase(Phase::decode);
  b.free(Category::logits_and_loss, logits);
  b.free(Category::workspace, workspace.bytes);
  return program;
}

}  // namespace shardplan
