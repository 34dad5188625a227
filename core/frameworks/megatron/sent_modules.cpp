#include "frameworks/megatron/sent_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"
#include "options/choices.h"

namespace shardplan {
namespace {

std::uint32_t asked_modules(const MegatronOptions& options) {
  std::uint32_t modules = 0;
  for (const std::string& name : options.offload_modules)
    if (const NamedValue* known = find_choice(kSentModules, name))
      modules |= bit_of(static_cast<SentModule>(known->value));
  return modules;
}

DivisionProblem modules_problem(std::string found, std::string expected) {
  return {"framework.offload_modules", std::move(found), std::move(expected)};
}

/// Chunks of layers between their passes on the first stage, which has most
/// (megatron/core/pipeline_parallel/schedules.py).
std::int64_t chunks_in_flight(const Plan& plan) {
  const Parallel& p = plan.parallel;
  const std::int64_t batches = plan.workload.gradient_accumulation;
  if (p.pipeline == 1) return 1;
  if (p.virtual_pipeline == 1)
    return p.schedule == PipelineSchedule::gpipe ? batches : std::min(batches, p.pipeline);
  const std::int64_t warmup = 2 * (p.pipeline - 1) + (p.virtual_pipeline - 1) * p.pipeline;
  return std::min(checked_mul(batches, p.virtual_pipeline), warmup + 1);
}

}  // namespace

SentModules sent_modules(const Plan& plan) {
  const MegatronOptions& options = plan.framework.megatron;
  const bool sends = plan.framework.kind == FrameworkKind::megatron &&
                     plan.workload.kind == WorkKind::train && !options.offload_modules.empty();
  if (!sends) return {};
  return {true, asked_modules(options), options.min_offloaded_tensor_size};
}

std::optional<DivisionProblem> sent_modules_problem(const Plan& plan) {
  const SentModules sent = sent_modules(plan);
  if (!sent.active) return std::nullopt;
  const auto sends = [&](SentModule module) { return (sent.modules & bit_of(module)) != 0; };
  if (!plan.framework.megatron.transformer_engine)
    return modules_problem(
        "Megatron-LM (core 0.16) stops: transformer_impl 'local' has no offloading",
        "none, or transformer_impl transformer_engine");
  if (sends(SentModule::attn_proj) && !sends(SentModule::core_attn))
    return modules_problem(
        "Megatron-LM (core 0.16) stops: the input of attn_proj is the result of "
        "core_attn, whose backward pass needs it",
        "core_attn too, or no attn_proj");
  if (plan.checkpointing == Checkpointing::selective && sends(SentModule::core_attn))
    return modules_problem(
        "core_attn is recomputed: Megatron-LM (core 0.16) stops, since recomputed "
        "attention begins no group that could be sent",
        "other modules, or checkpointing none");
  if (plan.recomputes_blocks() && plan.checkpointing != Checkpointing::selective)
    return modules_problem(
        "not estimated where whole layers are recomputed: they keep their inputs alone",
        "none, or checkpointing none");
  if (plan.attention == AttentionKind::eager)
    return modules_problem("not estimated with unfused attention", "none, or attention sdpa");
  return std::nullopt;
}

std::optional<DivisionProblem> sent_modules_problem(const Model& model, const Plan& plan) {
  if (!sent_modules(plan).active) return std::nullopt;
  const bool latent = std::ranges::any_of(model.parameters, [](const Parameter& parameter) {
    return parameter.name.find("kv_b_proj") != std::string::npos;
  });
  if (latent)
    return modules_problem(
        "not estimated with latent attention, whose norms are modules of their own", "none");
  if (model.facts.image.has_tower || model.facts.has_state || model.facts.encoder_decoder)
    return modules_problem("estimated for decoders of text alone", "none");
  return std::nullopt;
}

HostMemory sent_on_host(const Plan& plan, const ModelRun& run) {
  HostMemory host;
  if (!sent_modules(plan).active) return host;
  std::int64_t blocks = 0, most = 0;
  for (const SegmentRun& s : run.segments) {
    if (s.forward.pinned == 0) continue;
    blocks += s.segment->repeat;
    most = std::max(most, s.forward.pinned);
  }
  const std::int64_t chunks = plan.parallel.pipeline * plan.parallel.virtual_pipeline;
  host.pinned = checked_mul(most, checked_mul(ceil_div(blocks, chunks), chunks_in_flight(plan)));
  return host;
}

}  // namespace shardplan
