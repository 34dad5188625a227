#include "load/adapters.h"

#include <fmt/format.h>

#include <algorithm>

#include "frameworks/registry.h"
#include "kernels/registry.h"
#include "load/quantized_base.h"
#include "model/builder.h"
#include "model/peft_targets.h"

namespace shardplan {
namespace {

/// DoRA reads a base's weight outside of the base's own forward pass.
void check_magnitudes(ObjectReader& job, const Plan& plan) {
  constexpr const char* kDora = "workload.lora.dora";
  const FrameworkTraits& framework = traits_of(plan);
  if (framework.has_zero && framework.shards_parameters(plan))
    job.fail(kDora, "under ZeRO-3 it would read weights that are in shards again: not estimated",
             "ZeRO stage 1 or 2, FSDP, or no dora");
}

/// peft passes over names that no module has (utils/other.py, _set_trainable).
std::vector<std::string> unmet(const Model& model, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const bool met =
        std::any_of(model.parameters.begin(), model.parameters.end(), [&](const Parameter& p) {
          return p.copy && p.name.find(name + ".modules_to_save.") != std::string::npos;
        });
    if (!met) found.push_back(name);
  }
  return found;
}

/// Trainers that name the linears which there are themselves (Axolotl, LLaMA-Factory) leave experts
/// out where no other layer has linears of such names: a warning, and the larger estimate.
std::vector<Diagnostic> check_experts(ObjectReader& job, const Model& model, const Plan& plan) {
  const BuildOptions options = build_options(plan);
  if (options.adapts_linears_alone || options.joins_adapters) return {};
  Lora lora = *plan.workload.lora;
  const ExpertTargets experts = take_expert_targets(model.facts.model_type, lora);
  std::vector<Diagnostic> found;
  if (experts.taken.empty()) return found;
  const std::string names = fmt::format("{}", fmt::join(experts.taken, ", "));
  if (lora.dropout > 0)
    found.push_back({.severity = Severity::warning,
                     .file = job.file(),
                     .key = "workload.lora.dropout",
                     .message = fmt::format(
                         "peft takes {} for weights of experts of '{}', and refuses dropout there",
                         names, model.facts.model_type),
                     .expected = "0, or other targets"});
  if (lora.magnitudes)
    found.push_back({.severity = Severity::warning,
                     .file = job.file(),
                     .key = "workload.lora.dora",
                     .message = fmt::format(
                         "peft takes {} for weights of experts of '{}', and refuses DoRA there",
                         names, model.facts.model_type),
                     .expected = "false, or other targets"});
  return found;
}

/// Liger and its like read the head's weight, and none of its adapters.
bool passes_over_adapted_head(const Model& model, const Plan& plan) {
  const bool fuses = plan.loss == LossKind::fused_linear || plan.loss == LossKind::tiled ||
                     plan.kernels.patches ||
                     (plan.kernels.names & bit_of(KernelName::fused_linear_cross_entropy)) != 0;
  return fuses && std::ranges::any_of(model.parameters, [](const Parameter& p) {
           return p.name.find("lm_head.lora_") != std::string::npos;
         });
}

}  // namespace

std::vector<Diagnostic> check_adapters(ObjectReader& job, const Model& model, const Plan& plan) {
  if (!plan.workload.lora) return {};
  const Lora& lora = *plan.workload.lora;
  if (lora.magnitudes) check_magnitudes(job, plan);
  std::vector<Diagnostic> found;
  for (const std::string& name : unmet(model, lora.saved))
    found.push_back(
        {.severity = Severity::warning,
         .file = job.file(),
         .key = "workload.lora.modules_to_save",
         .message = fmt::format(
             "no module of this model has a name that ends in '{}': peft passes over it", name)});
  if (passes_over_adapted_head(model, plan))
    found.push_back({.severity = Severity::warning,
                     .file = job.file(),
                     .key = "workload.lora.targets",
                     .message =
                         "a head that is fused with its loss passes over adapters of lm_head, "
                         "which then learn nothing: it is estimated with all logits",
                     .expected = "no lm_head among the targets, or loss cross_entropy"});
  for (Diagnostic& d : check_experts(job, model, plan)) found.push_back(std::move(d));
  for (Diagnostic& d : check_quantized_base(job, model, plan)) found.push_back(std::move(d));
  return found;
}

}  // namespace shardplan
