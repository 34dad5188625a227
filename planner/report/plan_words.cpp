#include "report/plan_words.h"

#include <fmt/format.h>

#include <utility>

#include "frameworks/registry.h"
#include "kernels/registry.h"
#include "lowering/rlhf/roles.h"
#include "optimizers/description.h"
#include "report/words.h"
#include "trainers/description.h"

namespace shardplan::report {
namespace {

bool is_empty(const Cell& cell) {
  return std::holds_alternative<std::monostate>(cell);
}

/// "left, right"
Cell with(Cell left, Cell right) {
  return message("list.with", {{"left", std::move(left)}, {"right", std::move(right)}});
}

Text plan_attention(const Plan& plan) {
  return message(plan.attention == AttentionKind::eager ? "plan.attention.eager"
                 : plan.calls_flash_attn()              ? "plan.attention.flash_attn"
                                                        : "plan.attention.fused");
}

Cell plan_checkpointing(const Plan& plan) {
  const CheckpointShare& share = plan.checkpoint_share;
  switch (plan.checkpointing) {
    case Checkpointing::none:
      return message("plan.checkpointing.none");
    case Checkpointing::selective:
      return message("plan.checkpointing.selective");
    case Checkpointing::selective_op:
      return message("plan.checkpointing.selective_op", {{"every", count(share.every)}});
    case Checkpointing::blocks:
      if (share.every > 0)
        return message("plan.checkpointing.every", {{"every", count(share.every)}});
      return message("plan.checkpointing.count", {{"count", count(share.count)}});
    case Checkpointing::full:
      break;
  }
  return message("plan.checkpointing.full");
}

/// Where checkpointed blocks keep their inputs, or all blocks what they keep, if not whole on each
/// GPU.
Cell saved_input_words(const Plan& p) {
  const bool sends_all = p.checkpoint_share.offload && traits_of(p).is_own_engine;
  if (sends_all || p.activation_offloading != ActivationOffloading::none)
    return message("plan.activations.on_host");
  const SavedInput how = traits_of(p).saved_input(p);
  if (how.function == CheckpointFunction::torch && !how.on_host) return {};
  const bool divided = how.divided && how.ranks > 1;
  const Argument parts{"parts", count(how.ranks)};
  if (divided && how.on_host) return message("plan.inputs.divided_on_host", {parts});
  if (divided) return message("plan.inputs.divided", {parts});
  return how.on_host ? Cell(message("plan.inputs.on_host")) : Cell();
}

/// Fused kernels in place of PyTorch's, if there are any.
Cell kernel_words(const KernelRequest& kernels) {
  if (kernels.patches) return message("plan.kernels.all");
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kKernelNames; ++i)
    if ((kernels.names >> i & 1U) != 0) names.push_back(fused_kernels()[i]->name);
  if (names.empty()) return {};
  return message("plan.kernels", {{"kernels", fmt::format("{}", fmt::join(names, ", "))}});
}

std::vector<Cell> training_words(const Plan& p) {
  const Workload& w = p.workload;
  Cell how = message("plan.training", {{"method", method_words(w)},
                                       {"framework", framework_words(p)},
                                       {"precision", p.precision.name},
                                       {"optimizer", std::string(p.optimizer.kind->words)}});
  if (p.trainer != &default_trainer())
    how = with(how, message("plan.trainer", {{"trainer", std::string(p.trainer->words)}}));
  Cell batch = message("plan.batch",
                       {{"batch", count(w.micro_batch)}, {"tokens", count(w.sequence_length)}});
  if (w.gradient_accumulation > 1)
    batch = with(batch, message("plan.accumulation", {{"steps", count(w.gradient_accumulation)}}));
  batch = with(batch, plan_checkpointing(p));
  if (Cell inputs = saved_input_words(p); !is_empty(inputs)) batch = with(batch, inputs);
  if (p.mlp_tiles > 0) batch = with(batch, message("plan.tiles", {{"parts", count(p.mlp_tiles)}}));
  batch = with(batch, plan_attention(p));
  if (Cell kernels = kernel_words(p.kernels); !is_empty(kernels)) batch = with(batch, kernels);
  if (p.compile)
    batch = with(batch, message(p.compiles_whole() ? "plan.compile.model" : "plan.compile.block"));
  return {how, degree_words(p), batch};
}

/// What an engine is asked, whatever it runs at once.
Cell serving_line(const Workload& w) {
  const Cell line = message("plan.serving", {{"prompt", count(w.sequence_length)},
                                             {"new", count(w.generation.new_tokens)}});
  if (w.generation.shared_prefix == 0) return line;
  return with(line, message("plan.shared_prefix", {{"tokens", count(w.generation.shared_prefix)}}));
}

/// How it generates, and on how much at a time.
std::vector<Cell> generation_words(const Plan& p) {
  const Workload& w = p.workload;
  const Generation& g = w.generation;
  Cell how = message("plan.generation", {{"framework", framework_words(p)}});
  if (g.injection && g.injection->tensor_parallel > 1)
    how = message("plan.over_gpus", {{"what", how}, {"gpus", count(g.injection->tensor_parallel)}});
  if (g.engine && g.engine->tensor_parallel > 1)
    how = message("plan.over_gpus", {{"what", how}, {"gpus", count(g.engine->tensor_parallel)}});
  how = with(how, std::string(name_of(p.precision.params)));
  if (g.weights != Quantization::none) how = with(how, words_of(g.weights));
  if (g.fp8_cache) how = with(how, message("plan.fp8_cache"));
  if (g.engine) return {how, serving_line(w)};
  how = with(how, plan_attention(p));
  return {how, message("plan.prompts", {{"batch", count(w.micro_batch)},
                                        {"prompt", count(w.sequence_length)},
                                        {"new", count(g.new_tokens)}})};
}

Cell role_line(const Role& role) {
  const Text use = message(!role.trains              ? "plan.role.frozen"
                           : role.plan.workload.lora ? "plan.role.lora"
                                                     : "plan.role.trained");
  const Cell line = message(
      "plan.role", {{"role", words_of(role.kind)},
                    {"model", model_name(role.model)},
                    {"parameters", Quantity{role.model.parameter_count(), Unit::parameters}},
                    {"use", use},
                    {"framework", framework_words(role.plan.framework)},
                    {"precision", role.plan.precision.name}});
  if (role.idle == Idle::gpu) return line;
  return with(line, role.idle_on_host()
                        ? message("plan.role.idle_on_host")
                        : message("plan.role.idle_partly",
                                  {{"what", message("idle." + std::string(name_of(role.idle)))}}));
}

std::vector<Cell> rlhf_words(const Rlhf& rlhf) {
  std::vector<Cell> lines;
  for (const Role* role : rlhf.all_roles()) lines.push_back(role_line(*role));
  const Workload& w = rlhf.roles.front().plan.workload;
  Cell batch = message("plan.algorithm",
                       {{"algorithm", message("algorithm." + std::string(name_of(rlhf.algorithm)))},
                        {"batch", count(w.micro_batch)},
                        {"tokens", count(w.sequence_length)}});
  if (generates(rlhf.algorithm)) {
    const Workload& g = rlhf.generation.workload;
    batch = with(batch, message("plan.generated", {{"tokens", count(g.generation.new_tokens)},
                                                   {"sequences", count(g.micro_batch)}}));
    if (rlhf.hybrid) batch = with(batch, message("plan.hybrid_engine"));
  }
  lines.push_back(batch);
  if (rlhf.rollout && rlhf.rollout->gpus)
    lines.push_back(message(rlhf.rollout->runs_ahead() ? "plan.engine_ahead" : "plan.engine_apart",
                            {{"engine", std::string(rlhf.rollout->engine->words)},
                             {"gpus", count(*rlhf.rollout->gpus)}}));
  return lines;
}

}  // namespace

Text method_words(const Workload& w) {
  if (!w.lora) return message("method.full");
  return message(w.lora->base == Quantization::none ? "method.lora" : "method.qlora",
                 {{"rank", count(w.lora->rank)},
                  {"bits", count(format_of(w.lora->base).bits)},
                  {"targets", fmt::format("{}", fmt::join(w.lora->targets, ", "))}});
}

std::vector<Cell> plan_words(const Job& job) {
  std::vector<Cell> lines = job.rlhf ? rlhf_words(*job.rlhf)
                            : job.plan.workload.kind == WorkKind::inference
                                ? generation_words(job.plan)
                                : training_words(job.plan);
  std::erase_if(lines, [](const Cell& line) { return is_empty(line); });
  return lines;
}

}  // namespace shardplan::report
