// What does not go together in a job: precision, optimizer, an engine's sizes.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "load/engine.h"
#include "load/job_loader.h"
#include "load/rlhf.h"
#include "optimizers/description.h"
#include "parallel/cuts.h"
#include "parallel/degrees.h"
#include "rollout/sizes.h"

namespace shardplan {
namespace {

/// Why the package flash-attn 2 does not run the job's attention (csrc/flash_attn/flash_api.cpp
/// wants Ampere and 16 bits); "": it does, or is not asked. Transformer Engine takes another kernel
/// where one cannot run.
std::string why_no_flash_attn(const Model& model, const Plan& plan) {
  if (!plan.calls_flash_attn() || traits_of(plan).split == SplitStyle::megatron) return "";
  const Gpu& gpu = plan.cluster.gpu;
  if (lacks(gpu, PeakRate::bf16))
    return fmt::format("flash-attn 2 wants Ampere or a newer GPU, and {} is older", gpu.name);
  if (plan.precision.compute == DType::f32)
    return fmt::format("flash-attn 2 computes in bf16 and fp16 alone, and precision {} in fp32",
                       plan.precision.name);
  if (!model.facts.supports_flash_attn)
    return fmt::format("transformers does not run {} on flash-attn 2", model.facts.model_type);
  return "";
}

}  // namespace

void JobLoader::check_engine() {
  Workload& w = plan().workload;
  RolloutEngine& engine = *w.generation.engine;
  check_longest(reader_, "workload.engine", engine, w.generation.new_tokens);
  fit_length(reader_, "workload.engine", engine,
             w.sequence_length + std::max(w.generation.new_tokens, engine.longest_answer));
  choose_sizes(engine, plan().cluster.gpu, EngineCaller::server);
  check_serving(reader_, job_.model, plan());
}

/// Linears that multiply in formats of their own, over plain parameters.
void JobLoader::check_recipe() {
  const ProductRecipe& recipe = recipe_of(plan().precision.linear);
  if (recipe.cast == OperandCast::none) return;
  const Plan& p = plan();
  if (lacks(p.cluster.gpu, recipe.units))
    reader_.fail("precision.linear", say("{} has no {}", p.cluster.gpu.name, recipe.wants),
                 "bf16, or a newer GPU");
  if (p.workload.kind != WorkKind::train || !traits_of(p).takes_recipes ||
      (p.workload.lora && !traits_of(p).is_own_engine))
    reader_.fail("precision.linear", "is for full training with plain parameters",
                 "framework native, or single, ddp, fsdp2 or megatron with method full");
  if (traits_of(p).is_own_engine) return;  // it has limits and casts of its own
  if (traits_of(p).split == SplitStyle::megatron) leave_routers_wide();
  check_recipe_widths(recipe);
  // A run that Megatron-LM publishes (data/published/megatron_ci.json) took 1.36 times the
  // estimate.
  if (expert_count(job_.model) > 0 && p.framework.megatron.shard_parameters)
    reader_.fail("precision.linear",
                 "experts in 8 bits under Megatron-FSDP take more than can be estimated yet",
                 "bf16, or no Megatron-FSDP");
  const bool fuses_casts = recipe.cast == OperandCast::eager && p.compile.has_value();
  if (!fuses_casts) warn("precision.linear", std::string(recipe.caveat));
  if (recipe.cast == OperandCast::kept && expert_count(job_.model) > 0)
    job_.assumed.emplace_back(
        "experts keep what they read in 16 bits, which is more, beside weights in 8 bits");
}

/// Megatron-LM's routers are no modules of Transformer Engine (transformer/moe/router.py).
void JobLoader::leave_routers_wide() {
  for (Parameter& w : job_.model.parameters)
    if (is_router(w.name)) w.quantizable = false;
}

void JobLoader::check_recipe_widths(const ProductRecipe& recipe) {
  const auto odd = [&](std::int64_t width) { return width % recipe.multiple != 0; };
  const std::int64_t tokens = plan().workload.micro_batch * plan().workload.sequence_length;
  if (odd(tokens))
    reader_.fail("precision.linear",
                 fmt::format("{} tokens of a micro-batch: {} wants a multiple of {}", tokens,
                             recipe.library, recipe.multiple),
                 "another micro_batch or sequence_length");
  for (const Parameter& w : job_.model.parameters)
    if (w.quantizable && std::ranges::any_of(w.shape, odd))
      reader_.fail("precision.linear",
                   fmt::format("{} has a width that {} does not divide, as {} wants", w.name,
                               recipe.multiple, recipe.library),
                   "bf16");
}

void JobLoader::check_precision() {
  const Gpu& gpu = plan().cluster.gpu;
  if (const std::string why = why_no_flash_attn(job_.model, plan()); !why.empty())
    warn("sdpa_kernel", why +
                            ": such a run stops in its first step. cudnn_attention, the default, "
                            "is PyTorch's own fused attention");
  const bool bf16 = plan().precision.compute == DType::bf16;
  if (bf16 && lacks(gpu, PeakRate::bf16))
    warn("precision",
         fmt::format("{} has no bf16 units: use fp16-master or fp16-autocast", gpu.name));
}

bool JobLoader::keeps_pages(const OptimizerDescription& optimizer) {
  return std::ranges::any_of(optimizer.states, [](const State& s) { return s.paged_from > 0; });
}

/// What is known to stop at the first step. Its states are estimated all the same.
void JobLoader::check_optimizer() {
  if (is_inference()) return;
  const OptimizerDescription& optimizer = *plan().optimizer.kind;
  const Given given = traits_of(plan()).given;
  if (traits_of(plan()).has_zero && plan().framework.deepspeed.zero.stage > 0 &&
      keeps_pages(optimizer))
    reader_.fail("optimizer",
                 "paged states under ZeRO: DeepSpeed 0.19.6 stops at an optimizer that it has not "
                 "tested (\"zero_allow_untested_optimizer\"), and its own offload cannot move them",
                 "adamw, or offload_optimizer in place of paging");
  const std::string_view stops = optimizer.stops[static_cast<std::size_t>(given)];
  if (!stops.empty()) warn("optimizer", std::string(stops));
  if (plan().precision.gradients != DType::f32 && given == Given::tensors &&
      !optimizer.stops_at_half.empty())
    warn("optimizer", std::string(optimizer.stops_at_half));
}

}  // namespace shardplan
