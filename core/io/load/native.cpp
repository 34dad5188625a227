#include "load/native.h"

#include <fmt/format.h>

#include "optimizers/description.h"

namespace shardplan {

void check_native(const ObjectReader& job, const Plan& plan) {
  const auto cannot = [](std::string_view what) {
    return fmt::format("the native engine has no {}", what);
  };
  const Precision& p = plan.precision;
  if (p.autocast())
    job.fail("precision", cannot(fmt::format("autocast ({})", p.name)),
             "fp32, bf16-pure, bf16-master or fp16-master");
  if (p.params == DType::f16 && !p.master)
    job.fail("precision", cannot("fp16 without fp32 master weights"), "fp16-master");
  if (p.master && *p.master != DType::f32)
    job.fail("precision.master", cannot("masters but fp32"), "fp32");
  if (p.optimizer_states != DType::f32 &&
      (p.optimizer_states != DType::bf16 || p.params != DType::bf16 || p.master))
    job.fail("precision.optimizer_states", cannot("such states"),
             "fp32, or bf16 with bf16 parameters and no master");
  if (p.reduce && *p.reduce != p.gradients)
    job.fail("precision.reduce", cannot("reduction in another type than the gradients'"),
             std::string(name_of(p.gradients)));
  if (!plan.optimizer.kind->native || plan.optimizer.amsgrad)
    job.fail("optimizer", cannot("optimizer but AdamW"), "adamw");
  if (plan.workload.lora) job.fail("workload.method", cannot("LoRA"), "full");
  if (plan.attention == AttentionKind::eager)
    job.fail("attention", cannot("eager attention"), "sdpa");
}

}  // namespace shardplan
