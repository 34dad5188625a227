#include "compile/assumptions.h"

#include <algorithm>

#include "frameworks/registry.h"
#include "kernels/registry.h"
#include "model/model.h"

namespace shardplan {
namespace {

template <typename Test>
bool any_fused(const Model& model, Test&& test) {
  return std::any_of(model.segments.begin(), model.segments.end(), [&](const Segment& segment) {
    return std::any_of(segment.graph.ops().begin(), segment.graph.ops().end(),
                       [&](const Op& op) { return op.fused != nullptr && test(op); });
  });
}

bool runs_fused(const Model& model, OpKind kind) {
  return any_fused(model, [&](const Op& op) { return op.kind == kind; });
}

bool runs_kernel(const Model& model, KernelName name) {
  const FusedKernel* kernel = fused_kernels()[static_cast<std::size_t>(name)];
  return any_fused(model, [&](const Op& op) { return op.fused == kernel; });
}

/// Of those that frameworks put around modules and gradients.
void assume_hooks(const Plan& plan, std::vector<std::string>& assumed) {
  const FrameworkTraits& framework = traits_of(plan);
  if (framework.has_zero && !framework.breaks_at_modules(plan))
    assumed.emplace_back(
        "DeepSpeed 0.19.6's engine over a model compiled in one piece, whose gradients are all "
        "there before its hooks take one: five runs at stages 1 and 2 confirm it, within 1.2 %");
  if (framework.breaks_at_modules(plan))
    assumed.emplace_back(
        "hooks of stage 3 around modules, after the source of DeepSpeed 0.19.6 and PyTorch 2.11: "
        "each module is a graph of its own, and checkpointed blocks run eagerly; three runs "
        "confirm it, within 2.1 % before and 0.1 % since");
  if (framework.breaks_at_blocks(plan))
    assumed.emplace_back(
        "FSDP2's hooks break the graph of a whole model at each block, and accelerate's at the "
        "last norm and the head, after the source of PyTorch 2.11 and accelerate 1.15: a run "
        "confirms it, which was in view");
}

void assume_few_bits(const Model& model, const Plan& plan, std::vector<std::string>& assumed) {
  const bool few_bits = plan.workload.lora && plan.workload.lora->base != Quantization::none;
  if (few_bits && plan.workload.lora->base == Quantization::int8)
    assumed.emplace_back(
        "pieces of layers between LLM.int8()'s functions, as PyTorch 2.11 compiles them, and no "
        "outliers among the inputs: three runs confirm it, within 0.9 % and with checkpointing 3.3 "
        "% too low");
  else if (few_bits && runs_fused(model, OpKind::rotary))
    assumed.emplace_back(
        "weights in four bits between Liger-Kernel's functions: no run confirms it yet");
  else if (few_bits)
    assumed.emplace_back(
        "bitsandbytes 0.50's operators as PyTorch 2.11 compiles them: a run confirms it, and "
        "explains why checkpointing keeps the result of every product");
}

}  // namespace

std::vector<std::string> compile_assumptions(const Model& model, const Plan& plan) {
  std::vector<std::string> assumed;
  if (!plan.compile) return assumed;
  if (plan.records_graphs())
    assumed.emplace_back(
        "CUDA graphs after the source of PyTorch 2.11: both passes in a pool of their own, which "
        "counts as reserved and not as allocated (four runs reserved what is predicted, within "
        "0.4 %); "
        "kernels take the host as long as without graphs");
  if (plan.compile->mode == CompileMode::max_autotune)
    assumed.emplace_back(
        "products are as fast as cuBLAS makes them, and what timing them takes while the first "
        "step compiles is not counted");
  if (plan.compiles_whole() && model.facts.vocabulary % 8 != 0)
    assumed.emplace_back(
        "the head's products read copies with longer rows, as 8 does not divide the vocabulary: "
        "Inductor times both ways while it compiles, and the one that needs more is counted");
  if (runs_kernel(model, KernelName::geglu))
    assumed.emplace_back(
        "that the step runs: the one run of Gemma with Liger-Kernel 0.8.5 compiled stopped with an "
        "illegal memory access in a kernel");
  if (runs_fused(model, OpKind::rotary))
    assumed.emplace_back(
        "Liger-Kernel's functions between pieces of layers as PyTorch 2.11 compiles them, and that "
        "the step runs: of six runs on one GPU three did, within 0.7 %; Llama and Mistral with "
        "adapters and SmolLM2 stopped with an illegal memory access in a kernel");
  if (runs_fused(model, OpKind::rotary) && plan.recomputes_blocks())
    assumed.emplace_back(
        "checkpointed blocks beside Liger's rotation run eagerly, after the source of PyTorch 2.11 "
        "and its own allocations: two runs confirm it");
  if (runs_fused(model, OpKind::rotary) && plan.compiles_whole() &&
      traits_of(plan).graph_bytes(plan) > 0)
    assumed.emplace_back(
        "pieces of layers between Liger's functions are cut at DDP's buckets, after the source of "
        "PyTorch 2.11: no run confirms it yet; of two that were tried one stopped");
  const FrameworkTraits& framework = traits_of(plan);
  if (plan.records_graphs() && framework.graph_bytes(plan) > 0)
    assumed.emplace_back(
        "CUDA graphs of the pieces that DDP's buckets cut, in one pool: three runs held what is "
        "predicted at the end of each phase, within 8 MiB, of which one reserved 2.7 % more");
  assume_hooks(plan, assumed);
  assume_few_bits(model, plan, assumed);
  return assumed;
}

std::string compile_warning(const Model& model, const Plan& plan) {
  if (!plan.compiles_whole() || !runs_fused(model, OpKind::fused_linear_loss)) return {};
  const bool frozen = plan.workload.lora.has_value();
  const bool cut = traits_of(plan).graph_bytes(plan) > 0;
  if (frozen || cut)
    return "compiled, each layer's attention beside Liger's kernels has a causal mask: without "
           "compile it needs none";
  return "compiled, Liger's fused loss keeps the logits of all tokens at once, and each layer a "
         "causal mask: without compile it needs a chunk of them and no mask";
}

}  // namespace shardplan
