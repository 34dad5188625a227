// What the program that trains adds: compiled code, kernels, its own name for an optimizer.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compile/assumptions.h"
#include "compile/problems.h"
#include "load/job_loader.h"
#include "load/precision.h"
#include "optimizers/description.h"
#include "trainers/bookkeeping.h"
#include "trainers/problems.h"
#include "trainers/registry.h"

namespace shardplan {

/// The optimizer that it runs under the name that the job has.
void JobLoader::take_trainer() {
  if (const auto problem = compile_problem(job_.model, plan()))
    reader_.fail("compile", problem->message, problem->expected);
  std::ranges::move(compile_assumptions(job_.model, plan()), std::back_inserter(job_.assumed));
  if (std::string known = compile_warning(job_.model, plan()); !known.empty())
    warn("compile", std::move(known));
  if (const auto problem = trainer_problem(plan()))
    reader_.fail("trainer", problem->message, problem->expected);
  if (const auto problem = kernels_problem(plan(), job_.model.facts.model_type))
    reader_.fail("kernels", problem->message, problem->expected);
  const Json* said = reader_.find("optimizer");
  const bool says = said != nullptr && said->is_object() && said->contains("embeddings_32bit");
  if (plan().trainer->embeddings_in_fp32 && !says)
    set_option(plan().optimizer, "embeddings_32bit", 1);
  widen_divided();
  assume_cast();
  const OptimizerDescription& runs = optimizer_of(*plan().trainer, *plan().optimizer.kind);
  if (&runs == plan().optimizer.kind) return;
  plan().optimizer.kind = &runs;
  plan().optimizer.implementation = runs.variants.front().implementation;
}

/// A 16-bit model trains as one under autocast there; adapters are fp32 as they are. Types said one
/// by one are those that train: of a program that turns no 16-bit training on.
void JobLoader::widen_divided() {
  Precision& precision = plan().precision;
  const Json* said = reader_.find("precision");
  if (said != nullptr && said->is_object() && said->contains("params")) return;
  if (!plan().trainer->widens_divided || !traits_of(plan()).casts_by_policy || is_inference() ||
      plan().workload.lora || precision.params == DType::f32 || precision.master)
    return;
  warn("precision",
       fmt::format("{} holds parameters that train in fp32 under {} while {} training is on: "
                   "estimated so, whatever type the model is loaded in; without it, precision is "
                   "{{\"params\": \"{}\"}}",
                   plan().trainer->words, std::string_view(traits_of(plan()).label),
                   name_of(precision.params), name_of(precision.params)));
  const LinearRecipe linear = precision.linear;
  precision = precision_preset(fmt::format("{}-autocast", name_of(precision.params)));
  precision.linear = linear;
}

/// The larger of what may be: nothing in a job tells whether its program casts the model.
void JobLoader::assume_cast() {
  const DeepSpeedOptions& options = plan().framework.deepspeed;
  if (zero_options(plan()) == nullptr || options.model_dtype || is_inference()) return;
  if (!plan().trainer->casts_divided_model || options.zero.stage < 3 ||
      options.zero.offload_param.device == OffloadDevice::none)
    return;
  job_.assumed.push_back(
      "parameters on the host: fp32, as after a model.to(float32); framework.model_dtype says "
      "otherwise");
}

}  // namespace shardplan
