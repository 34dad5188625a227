#include "lowering/rlhf/lower.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "frameworks/registry.h"
#include "lowering/inference/generate.h"
#include "lowering/inference/weights.h"
#include "lowering/inference/workspace.h"
#include "lowering/library_workspaces.h"
#include "lowering/lower.h"
#include "lowering/tensors.h"
#include "program/compose.h"

namespace shardplan {
namespace {

/// A forward pass over whole sequences without autograd, down to the log-probabilities of their
/// tokens or to their values.
Program lower_scoring(const Rlhf& rlhf, const Role& role) {
  Plan plan = role.plan;
  if (generates(rlhf.algorithm))  // all that was generated at once
    plan.workload.micro_batch = rlhf.generation.workload.micro_batch;
  const ModelRun run = run_pass(role.model, plan, {plan.workload.sequence_length, 0}, nullptr);
  FrozenWeights weights(role.model, plan, run);
  Program program = program_of(run);
  ProgramBuilder b(program);
  weights.add_residents(program);
  b.begin_phase(Phase::experience);
  weights.begin_pass(b);
  if (weights.are_gathered()) {
    emit_pass(b, role.model, run, weights);
  } else {
    NoHooks hooks;
    emit_pass(b, role.model, run, hooks);
  }
  weights.end_pass(b);
  b.free_named(Category::logits_and_loss, run.segments.back().forward.output_bytes,
               detail::kOutputName);
  b.end_phase(Phase::experience);
  return program;
}

/// What the hybrid engine gathers for generation under ZeRO-3: every layer at once if parameters
/// are pinned, else as many layers as one partition has.
std::int64_t gathered_for_generation(const Rlhf& rlhf) {
  const Role& actor = rlhf.roles.front();
  if (!rlhf.hybrid || !is_zero3(actor.plan)) return 0;
  const std::int64_t all =
      checked_mul(actor.model.parameter_count(), size_of(actor.plan.precision.params));
  if (rlhf.hybrid->pin_parameters) return ceil_div(all, rlhf.hybrid->inference_tp_size);
  const std::int64_t layers = std::max<std::int64_t>(1, actor.model.facts.layers);
  return ceil_div(all, layers) * std::min(rlhf.hybrid->tp_gather_partition_size, layers);
}

/// The workspace of the hybrid engine's kernels.
std::int64_t hybrid_workspace(const Rlhf& rlhf) {
  const Plan& plan = rlhf.generation;
  return deepspeed_workspace(rlhf.generator->facts, plan.workload.micro_batch,
                             rlhf.hybrid->max_out_tokens, rlhf.hybrid->inference_tp_size,
                             plan.precision.params, plan.cluster.gpu.usable.count())
      .bytes;
}

/// The hybrid engine's generation: the training engine's weights, DeepSpeed's kernels in one
/// workspace, which the caller provides.
Program lower_hybrid(const Rlhf& rlhf) {
  Program program = lower_generation(*rlhf.generator, rlhf.generation);
  std::erase_if(program.events, [](const Event& e) {
    return (e.kind == Event::Kind::alloc || e.kind == Event::Kind::free) &&
           e.category == Category::workspace;
  });
  return program;
}

/// Ids, log-probabilities of actor and reference, and for PPO values and rewards, fp32 but for the
/// ids, of every token that was generated on or asked for.
std::int64_t experience_bytes(const Rlhf& rlhf) {
  const Workload& w = rlhf.generation.workload;
  const std::int64_t tokens =
      checked_mul(w.micro_batch, w.sequence_length + w.generation.new_tokens);
  const std::int64_t floats = rlhf.algorithm == Algorithm::ppo ? 4 : 2;
  return round_up(checked_mul(tokens, 8 + 4 * floats), std::int64_t{512});
}

Phase training_phase(const Rlhf& rlhf, const Role& role) {
  if (!generates(rlhf.algorithm)) return Phase::step;
  return role.kind == RoleKind::critic ? Phase::critic_training : Phase::actor_training;
}

/// Bytes of the states that a role brings along, workspaces and the batch left out.
std::int64_t state_bytes(const Program& program) {
  std::int64_t sum = 0;
  for (const Event& e : program.resident)
    if (e.category != Category::workspace && e.category != Category::other)
      sum = checked_add(sum, checked_mul(e.bytes, e.count));
  return sum;
}

/// Of the parts of a role, the one whose residents are the role's: a training step, or for what is
/// frozen its only part.
bool brings_states(const RlhfPart& part) {
  return part.role->trains != part.scores;
}

/// What a part needs of a role that is away while it is idle, its weights or all of its states,
/// comes at the beginning and goes at the end, by way of the host's link.
void bring(ProgramBuilder& b, const Program& part, bool there) {
  for (const Event& e : part.resident) {
    if (e.category == Category::workspace || e.category == Category::other) continue;
    const std::int64_t bytes = checked_mul(e.bytes, e.count);
    there ? b.alloc(e.category, bytes) : b.free(e.category, bytes);
  }
  b.copy(LinkKind::host, there, state_bytes(part), there ? "a model to the GPU" : "a model away");
  b.wait(Stream::copy);
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::sft:
      return "sft";
    case Algorithm::reward:
      return "reward";
    case Algorithm::dpo:
      return "dpo";
    case Algorithm::ppo:
      return "ppo";
    case Algorithm::grpo:
      return "grpo";
  }
  return "";
}

std::string_view name_of(RoleKind role) {
  switch (role) {
    case RoleKind::actor:
      return "actor";
    case RoleKind::critic:
      return "critic";
    case RoleKind::reference:
      return "reference";
    case RoleKind::reward:
      return "reward";
  }
  return "";
}

std::vector<RlhfPart> rlhf_parts(const Rlhf& rlhf) {
  std::vector<RlhfPart> parts;
  if (generates(rlhf.algorithm))
    parts.push_back(
        {Phase::generation, &rlhf.roles.front(),
         rlhf.hybrid ? lower_hybrid(rlhf) : lower_generation(*rlhf.generator, rlhf.generation),
         true});
  for (const Role& role : rlhf.roles)
    if (!role.trains || rlhf.algorithm == Algorithm::ppo)
      parts.push_back({Phase::experience, &role, lower_scoring(rlhf, role), true});
  for (const Role& role : rlhf.roles)
    if (role.trains)
      parts.push_back({training_phase(rlhf, role), &role,
                       lower(role.model, role.plan, run_segments(role.model, role.plan), 0),
                       false});
  return parts;
}

std::vector<RoleStates> role_states(const Rlhf& rlhf) {
  std::vector<RoleStates> states;
  for (const RlhfPart& part : rlhf_parts(rlhf))
    if (brings_states(part)) states.push_back({part.role, state_bytes(part.program)});
  return states;
}

namespace {

/// Of what trains as the training step has them, of the rest their weights.
void append_states(Program& whole, const std::vector<RlhfPart>& parts) {
  for (const RlhfPart& part : parts) {
    if (!brings_states(part)) continue;
    if (!part.role->idle_on_host) {
      append_residents(whole, part.program);
      continue;
    }
    whole.host.pinned = checked_add(whole.host.pinned, state_bytes(part.program));
    whole.host.pageable += part.program.host.total();
  }
}

}  // namespace

Program lower_rlhf(const Rlhf& rlhf) {
  Program whole;
  whole.counts_blocks = true;
  ProgramBuilder b(whole);
  const std::vector<RlhfPart> parts = rlhf_parts(rlhf);
  add_cublas_workspaces(b, rlhf.roles.front().plan.cluster.gpu);
  append_states(whole, parts);
  const std::int64_t workspace = rlhf.hybrid ? hybrid_workspace(rlhf) : 0;
  const bool releases = rlhf.hybrid && rlhf.hybrid->release_inference_cache;
  if (!releases) b.resident(Category::workspace, workspace);
  whole.model_bytes = total_bytes(whole.resident);
  const auto run = [&](const RlhfPart& part, std::optional<Phase> as,
                       const std::function<void()>& after_forward = nullptr) {
    const Phase around = as.value_or(Phase::forward);
    const bool away = part.role->idle_on_host;
    if (away) b.begin_phase(around);
    if (away) bring(b, part.program, true);
    append_events(whole, part.program, as, after_forward);
    if (away) bring(b, part.program, false);
    if (away) b.end_phase(as.value_or(Phase::step));
  };
  const std::int64_t experience = generates(rlhf.algorithm) ? experience_bytes(rlhf) : 0;
  for (const RlhfPart& part : parts) {
    switch (part.phase) {
      case Phase::generation: {
        const std::int64_t gathered = gathered_for_generation(rlhf);
        b.begin_phase(Phase::generation);
        b.alloc(Category::gathered_parameters, gathered);
        b.alloc(Category::workspace, releases ? workspace : 0);
        run(part, Phase::generation);
        b.free(Category::workspace, releases ? workspace : 0);
        b.free(Category::gathered_parameters, gathered);
        b.alloc(Category::other, experience);
        b.end_phase(Phase::generation);
        break;
      }
      case Phase::experience:
        if (rlhf.algorithm != Algorithm::dpo) run(part, Phase::experience);
        break;
      case Phase::step:  // a step of its own: its phases keep their names
        run(part, std::nullopt, [&] {
          for (const RlhfPart& other : parts)
            if (other.phase == Phase::experience) run(other, Phase::experience);
        });
        break;
      default:
        run(part, part.phase);
        break;
    }
  }
  b.free(Category::other, experience);
  return whole;
}

}  // namespace shardplan
