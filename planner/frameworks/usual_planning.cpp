#include "frameworks/usual_planning.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "frameworks/registry.h"
#include "save/options.h"

namespace shardplan::usual {

std::string group(const Plan& plan) {
  return std::string(name_of(plan.framework.kind));
}

std::vector<const ExportFormat*> trainer_formats(const Plan& plan) {
  if (plan.parallel.tensor > 1) return {&kLaunchFormat, &kJobFormat};
  return {&kAccelerateFormat, &kLaunchFormat, &kJobFormat};
}

std::string accelerate_precision(const Plan& plan) {
  const DType compute = plan.precision.compute;
  const LinearRecipe linear = plan.precision.linear;
  const bool torchao = linear == LinearRecipe::fp8_tensorwise;
  const bool fp8 = torchao || linear == LinearRecipe::fp8_delayed;  // what its file has words for
  std::string text = fmt::format("mixed_precision: {}\ngradient_accumulation_steps: {}\n",
                                 fp8                      ? "fp8"
                                 : compute == DType::bf16 ? "bf16"
                                 : compute == DType::f16  ? "fp16"
                                                          : "'no'",
                                 plan.workload.gradient_accumulation);
  if (fp8) text += fmt::format("fp8_config:\n  backend: {}\n", torchao ? "AO" : "TE");
  if (torchao)
    text += fmt::format("  enable_fsdp_float8_all_gather: {}\n",
                        plan.framework.fsdp2.float8_all_gather != Float8Gather::none);
  if (!fp8 && linear != LinearRecipe::computed)
    text += fmt::format("# linears in {}: the program's to make\n", name_of(linear));
  return text;
}

std::string accelerate_block(const Plan& plan) {
  return fmt::format("distributed_type: {}\n", plan.cluster.world() > 1 ? "MULTI_GPU" : "'NO'") +
         accelerate_precision(plan);
}

Launch trainer_launch(const Job& job) {
  Launch launch;
  const std::int64_t tensor = job.plan.parallel.tensor;
  if (tensor > 1)
    launch.notes = fmt::format(
        "# {} GPUs share each layer: from_pretrained(..., tp_plan=\"auto\",\n"
        "# device_mesh=mesh[\"tensor\"]); fsdp2.py makes the mesh.\n",
        tensor);
  launch.arguments = trainer_arguments(job.plan, job.plan.precision.compute);
  return launch;
}

void write_options(Json& framework, const Plan& plan) {
  shardplan::write_options(framework, *traits_of(plan).options.get(), plan.framework);
}

std::vector<FrameworkRule> no_rules(const RuleContext&) {
  return {};
}

Framework own_or_default(const Plan& base, FrameworkKind kind) {
  if (base.framework.kind == kind) return base.framework;
  Framework framework;
  framework.kind = kind;
  return framework;
}

}  // namespace shardplan::usual
