#include "lowering/rlhf/lower.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "frameworks/registry.h"
#include "lowering/inference/generate.h"
#include "lowering/inference/kept_weights.h"
#include "lowering/inference/workspace.h"
#include "lowering/library_workspaces.h"
#include "lowering/lower.h"
#include "lowering/pipeline/stages.h"
#include "lowering/rank_model.h"
#include "lowering/rlhf/handover.h"
#include "lowering/rlhf/idle.h"
#include "lowering/rlhf/workspaces.h"
#include "lowering/segments.h"
#include "lowering/tensors.h"
#include "parallel/groups.h"
#include "parallel/shard.h"
#include "program/compose.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What a scoring pass takes at once, in `plan`; returns how many there are in an iteration.
std::int64_t take_scoring_batch(const Rlhf& rlhf, Plan& plan) {
  Workload& w = plan.workload;
  if (!scores_apart(rlhf.description())) return w.gradient_accumulation;
  const std::int64_t all = rlhf.generation.workload.micro_batch;
  const std::int64_t sequence =
      rlhf.generation.workload.sequence_length + rlhf.generation.workload.generation.new_tokens;
  if (rlhf.scoring_tokens > 0) {
    const std::int64_t divided = plan.parallel.sequence * plan.parallel.context;
    w.sequence_length = sequence;
    take_rows(w, checked_mul(rlhf.scoring_tokens, divided), divided);
  } else if (rlhf.scoring_batch > 0) {
    w.micro_batch = rlhf.scoring_batch;
    w.sequence_length = sequence;
  } else if (!plan.trainer->scores_micro_batches) {  // all that was generated at once
    w.micro_batch = all;
  }
  return ceil_div(all, w.micro_batch);
}

/// A forward pass over whole sequences without autograd, down to the log-probabilities of their
/// tokens or to their values. `finds_kept`: see KeptWeightsPass.
RlhfPart scoring_part(const Rlhf& rlhf, const Role& role, bool finds_kept) {
  Plan plan = role.plan;
  RlhfPart part{Phase::experience, &role, {}, true};
  part.times = take_scoring_batch(rlhf, plan);
  const bool own = role.kind == RoleKind::actor && rlhf.scorer.has_value();
  const Model& whole = own ? *rlhf.scorer : role.model;
  const std::optional<Model> share =
      is_sharded(plan) ? std::optional(shard(whole, plan)) : std::nullopt;
  const Model& model = share ? *share : whole;
  const std::int64_t pieces = checked_mul(plan.parallel.sequence, plan.parallel.context);
  const ModelRun run = run_pass(model, plan, {plan.workload.sequence_length / pieces, 0}, nullptr);
  const KeptWeightsPass pass{model, plan, run, role.trains, finds_kept, rlhf.rank};
  part.program = program_of(run);
  ProgramBuilder b(part.program);
  if (!role.trains) traits_of(plan).add_frozen(part.program, pass);
  b.begin_phase(Phase::experience);
  part.left = traits_of(plan).emit_inference(b, pass);
  if (stage_of_rank(model, plan, rlhf.rank).chunks.back().last)
    b.free_named(Category::logits_and_loss, run.segments.back().forward.output_bytes,
                 detail::kOutputName);
  b.end_phase(Phase::experience);
  part.program.groups = group_shapes(plan);
  return part;
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
  const std::int64_t floats = rlhf.description().has_critic ? 4 : 2;
  return round_up(checked_mul(tokens, 8 + 4 * floats), std::int64_t{512});
}

Phase training_phase(const Rlhf& rlhf, const Role& role) {
  if (!scores_apart(rlhf.description())) return Phase::step;
  return role.kind == RoleKind::critic ? Phase::critic_training : Phase::actor_training;
}

}  // namespace

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

namespace {

/// Scores are made of whatever was generated, by models that train too where values or old
/// log-probabilities are asked for; else beside the pass that trains.
void append_scoring(std::vector<RlhfPart>& parts, const Rlhf& rlhf) {
  const AlgorithmDescription& algorithm = rlhf.description();
  const std::int64_t extra = algorithm.extra_passes;
  const auto add = [&](const Role& role, bool finds_kept, std::int64_t passes) {
    RlhfPart part = scoring_part(rlhf, role, finds_kept);
    part.times *= passes;
    part.before_training = !algorithm.generates && traits_of(role.plan).scores_first;
    parts.push_back(std::move(part));
  };
  for (const Role& role : rlhf.roles)
    if (!role.trains)
      add(role, true, 1 + extra);
    else if (algorithm.has_critic ||
             (rlhf.rollout &&
              scores_apart(algorithm)))  // an engine's own scores are not the trainer's
      add(role, false, 1);
  const Role& actor = rlhf.roles.front();
  if (extra > 0) {
    add(actor, false, extra);
    parts.back().before_training = true;
  }
  if (rlhf.reference == ReferenceModel::base) add(actor, !scores_apart(algorithm), 1 + extra);
}

}  // namespace

void take_rows(Workload& w, std::int64_t tokens, std::int64_t divided) {
  constexpr std::int64_t kAligned = 8;
  w.micro_batch = std::max<std::int64_t>(1, tokens / w.sequence_length);
  const std::int64_t row = kAligned / std::gcd(kAligned, w.micro_batch);
  w.sequence_length = round_up(ceil_div(tokens, w.micro_batch), std::lcm(divided, row));
}

std::int64_t updates_of(const Rlhf& rlhf) {
  if (!generates(rlhf.algorithm)) return 1;
  const Workload& w = rlhf.roles.front().plan.workload;
  return ceil_div(rlhf.generation.workload.micro_batch,
                  checked_mul(w.micro_batch, w.gradient_accumulation));
}

namespace {

/// A training part. Behind generation autograd's workspace is taken to be there from the start:
/// where it comes to lie among what generation has left cached is not known.
Program training_program(const Rlhf& rlhf, const Role& role) {
  const RankModel rank(role.model, role.plan);
  Program program = lower(rank.model(), role.plan, rank.run(), rlhf.rank);
  if (!generates(rlhf.algorithm)) return program;
  for (EventsOfOneStep& once : program.once)
    if (std::exchange(once.workspace, 0) > 0) once.events.clear();
  return program;
}

}  // namespace

std::vector<RlhfPart> rlhf_parts(const Rlhf& rlhf) {
  std::vector<RlhfPart> training, parts;
  for (const Role& role : rlhf.roles) {
    if (!role.trains) continue;
    training.push_back(
        {training_phase(rlhf, role), &role, training_program(rlhf, role), false, updates_of(rlhf)});
  }
  if (generates(rlhf.algorithm))
    parts.push_back({Phase::generation, &rlhf.roles.front(),
                     rlhf.rollout  ? lower_rollout(rlhf, training.front().program)
                     : rlhf.hybrid ? lower_hybrid(rlhf)
                                   : lower_generation(*rlhf.generator, rlhf.generation),
                     true});
  append_scoring(parts, rlhf);
  std::move(training.begin(), training.end(), std::back_inserter(parts));
  return parts;
}

std::vector<RoleStates> role_states(const Rlhf& rlhf) {
  std::vector<RoleStates> states;
  for (const RlhfPart& part : rlhf_parts(rlhf))
    if (brings_states(part)) states.push_back({part.role, state_bytes(part.program)});
  return states;
}

namespace {

/// On the GPU once the part's model is built: of what trains without the states that the first step
/// makes. Optimizer states that are away while idle are among those.
std::int64_t built_bytes(const RlhfPart& part) {
  const Program& own = part.program;
  std::int64_t bytes = part.role->trains ? own.model_bytes : 0;
  for (const Event& e : own.resident) {
    const bool away = is_away(*part.role, e);
    if (part.role->trains && away && e.category != Category::optimizer_states)
      bytes -= checked_mul(e.bytes, e.count);
    if (!part.role->trains && !away && e.category != Category::workspace)
      bytes = checked_add(bytes, checked_mul(e.bytes, e.count));
  }
  return bytes;
}

/// The copy of the adapters that is the reference of preference training. A measured run of GRPO
/// had none.
std::vector<Event> reference_adapters(const Rlhf& rlhf, const Role& role) {
  std::vector<Event> copies;
  const bool copied = rlhf.reference == ReferenceModel::base && !generates(rlhf.algorithm) &&
                      role.kind == RoleKind::actor && role.plan.trainer->copies_adapters &&
                      !traits_of(role.plan).shards_parameters(role.plan);
  if (!copied) return copies;
  const DType type = regime_of(role.plan).adapters;
  role.model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.adapter)
      append_tensors(copies, Category::parameters,
                     round_up(checked_mul(p.numel, size_of(type)), kAllocationUnit), repeat);
  });
  return copies;
}

/// Of what trains as the training step has them, of the rest their weights. Where a part says how
/// its model is built, or has what only its first step makes, the whole is built of all that is
/// there before the first step: true.
bool append_states(const Rlhf& rlhf, Program& whole, const std::vector<RlhfPart>& parts) {
  std::vector<Event> build;
  bool differs = false;
  for (const RlhfPart& part : parts) {
    if (!brings_states(part)) continue;
    Program own = part.program;
    for (const Event& e : own.resident)
      if (is_away(*part.role, e))
        whole.host.pinned = checked_add(whole.host.pinned, checked_mul(e.bytes, e.count));
    if (part.role->idle_on_host()) {
      const std::size_t before = whole.resident.size();
      append_left_tensors(whole, own);
      differs = differs || whole.resident.size() > before;
      whole.host.pageable += own.host.total();
      continue;
    }
    whole.model_bytes = checked_add(whole.model_bytes, built_bytes(part));
    const std::vector<Event> copies = reference_adapters(rlhf, *part.role);
    whole.model_bytes = checked_add(whole.model_bytes, total_bytes(copies));
    own.resident.insert(own.resident.end(), copies.begin(), copies.end());
    if (!own.build.empty()) own.build.insert(own.build.end(), copies.begin(), copies.end());
    const auto away = [&](const Event& e) { return is_away(*part.role, e); };
    std::erase_if(own.resident, away);
    std::erase_if(own.build, away);
    append_residents(whole, own);
    differs = differs || !own.build.empty();
    for (const Event& e : own.build.empty() ? own.resident : own.build)
      if (e.category != Category::workspace && e.category != Category::optimizer_states)
        build.push_back(e);
  }
  if (differs) whole.build = std::move(build);
  return differs;
}

/// fp32 logits of the model that trains, which its trainer has a name for while others score.
std::int64_t held_logits(const Rlhf& rlhf) {
  const Role& actor = rlhf.roles.front();
  const bool all = rlhf.description().head == RlhfHead::log_probabilities &&
                   actor.plan.loss == LossKind::log_probabilities &&
                   actor.plan.trainer->keeps_logits;
  if (!all) return 0;
  const Workload& w = actor.plan.workload;
  const std::int64_t tokens = checked_mul(w.micro_batch, w.sequence_length);
  return round_up(checked_mul(checked_mul(tokens, actor.model.facts.vocabulary), 4),
                  kAllocationUnit);
}

/// States that come from the host before every pass are not made by the first step besides.
Program without_brought(Program program, const Role& role) {
  for (EventsOfOneStep& once : program.once)
    if (once.makes_residents)
      std::erase_if(once.events, [&](const Event& e) { return is_away(role, e); });
  return program;
}

/// Puts the parts of an iteration one after the other.
class Iteration {
 public:
  /// `order`: takes the number of each part when its kernels are added; may be null.
  Iteration(const Rlhf& rlhf, Program& whole, const std::vector<RlhfPart>& parts,
            std::vector<std::size_t>* order)
      : rlhf_(rlhf), parts_(parts), whole_(whole), b_(whole), order_(order) {
    for (const RlhfPart& part : parts) names_ = std::max(names_, names_of(part.program));
  }

  void generate(const RlhfPart& part, std::int64_t workspace, std::int64_t experience) {
    const std::int64_t gathered = gathered_for_generation(rlhf_);
    b_.begin_phase(Phase::generation);
    b_.alloc(Category::gathered_parameters, gathered);
    b_.alloc(Category::workspace, workspace);
    run(part, Phase::generation);
    b_.free(Category::workspace, workspace);
    b_.free(Category::gathered_parameters, gathered);
    b_.alloc(Category::other, experience);
    b_.end_phase(Phase::generation);
  }
  /// What a scoring pass has left gathered goes when its model trains.
  void score(const RlhfPart& part) {
    run(part, Phase::experience);
    b_.alloc(Category::gathered_parameters, part.left);
    if (empties(part).after_scores) b_.empty_cache();
  }
  void train(const RlhfPart& part) {
    for (const RlhfPart& other : parts_)
      if (other.scores && other.role == part.role)
        b_.free(Category::gathered_parameters, other.left);
    if (part.phase != Phase::step) {
      if (empties(part).around_training) b_.empty_cache();
      run(part, part.phase);
      if (empties(part).around_training) b_.empty_cache();
      return;
    }
    // A step of its own, whose phases keep their names: the scores are made within it.
    run(part, std::nullopt, [&] {
      const std::int64_t logits = held_logits(rlhf_);
      b_.alloc(Category::logits_and_loss, logits);
      for (const RlhfPart& other : parts_)
        if (other.phase == Phase::experience && !other.before_training)
          run(other, Phase::experience);
      b_.free(Category::logits_and_loss, logits);
    });
  }

 private:
  void run(const RlhfPart& part, std::optional<Phase> as,
           const std::function<void()>& after_forward = nullptr) {
    const Phase around = as.value_or(Phase::forward);
    // An engine's part says itself when it needs the actor.
    const bool away =
        part.role->idle != Idle::gpu && !(part.phase == Phase::generation && rlhf_.rollout);
    const Needed needed =
        part.role->trains && part.scores ? Needed::parameters : Needed::everything;
    const auto nth = static_cast<std::int32_t>(&part - parts_.data());
    if (order_ != nullptr) order_->push_back(static_cast<std::size_t>(nth));
    if (away) b_.begin_phase(around);
    if (away) bring(b_, states_of(part), *part.role, needed, true);
    if (away)
      append_events(whole_, without_brought(part.program, *part.role), as, after_forward,
                    nth * names_);
    else
      append_events(whole_, part.program, as, after_forward, nth * names_);
    if (away) bring(b_, states_of(part), *part.role, needed, false);
    if (away) b_.end_phase(as.value_or(Phase::step));
  }

  static const EmptiesCache& empties(const RlhfPart& part) {
    return part.role->plan.trainer->empties_cache;
  }

  const Program& states_of(const RlhfPart& part) const {
    for (const RlhfPart& other : parts_)
      if (other.role == part.role && brings_states(other)) return other.program;
    return part.program;
  }

  const Rlhf& rlhf_;
  const std::vector<RlhfPart>& parts_;
  Program& whole_;
  ProgramBuilder b_;
  std::vector<std::size_t>* order_;
  std::int32_t names_ = 0;  ///< of each part
};

}  // namespace

namespace {

Program lower_parts(const Rlhf& rlhf, const std::vector<RlhfPart>& parts,
                    std::vector<std::size_t>* order) {
  Program whole;
  whole.counts_blocks = true;
  ProgramBuilder b(whole);
  const Plan& plan = rlhf.roles.front().plan;
  add_cublas_workspaces(b, plan.cluster.gpu);
  std::vector<Event> libraries = whole.resident;
  const bool built = append_states(rlhf, whole, parts);
  whole.groups = group_shapes(plan);
  const std::int64_t workspace = rlhf.hybrid ? hybrid_workspace(rlhf) : 0;
  const bool releases = rlhf.hybrid && rlhf.hybrid->release_inference_cache;
  const std::int64_t states = total_bytes(whole.resident);
  const std::ptrdiff_t own = std::ssize(whole.resident);
  if (!releases) b.resident(Category::workspace, workspace);
  add_engine(whole, rlhf);
  add_processes(whole, rlhf);
  whole.model_bytes += total_bytes(whole.resident) - states;
  if (built)  // what is beside the models is there before the first step too
    whole.build.insert(whole.build.end(), whole.resident.begin() + own, whole.resident.end());
  const bool generating = generates(rlhf.algorithm);
  const std::int64_t experience = generating ? experience_bytes(rlhf) : 0;
  const bool answered = std::ranges::any_of(
      parts, [](const RlhfPart& part) { return part.phase == Phase::generation; });
  if (!answered) b.alloc(Category::other, experience);  // others made it
  Iteration iteration(rlhf, whole, parts, order);
  for (const RlhfPart& part : parts) {
    if (part.phase == Phase::generation)
      iteration.generate(part, releases ? workspace : 0, experience);
    else if (part.phase != Phase::experience)
      iteration.train(part);
    else if (scores_apart(rlhf.description()) || part.before_training)
      iteration.score(part);
  }
  b.free(Category::other, experience);
  make_workspaces_once(whole, std::move(libraries));
  return whole;
}

}  // namespace

Program lower_rlhf(const Rlhf& rlhf, std::vector<std::size_t>* order) {
  return lower_parts(rlhf, rlhf_parts(rlhf), order);
}

Rlhf alone_on_its_gpus(const Rlhf& rlhf, const RolesApart& group) {
  Rlhf alone;
  alone.algorithm = rlhf.algorithm;
  alone.roles = group.roles;
  alone.generation = rlhf.generation;
  alone.reference = ReferenceModel::none;
  alone.scoring_batch = rlhf.scoring_batch;
  alone.scoring_tokens = rlhf.scoring_tokens;
  Workload& w = alone.generation.workload;
  w.micro_batch = ceil_div(checked_mul(rlhf.roles.front().plan.data_ranks(), w.micro_batch),
                           group.roles.front().plan.data_ranks());
  return alone;
}

std::vector<RlhfPart> apart_parts(const Rlhf& alone) {
  std::vector<RlhfPart> parts;
  for (const Role& role : alone.roles) {
    parts.push_back(scoring_part(alone, role, !role.trains));
    if (!role.trains) parts.back().times *= 1 + alone.description().extra_passes;
  }
  for (const Role& role : alone.roles)
    if (role.trains)
      parts.push_back({training_phase(alone, role), &role, training_program(alone, role), false,
                       updates_of(alone)});
  return parts;
}

Program lower_apart(const Rlhf& alone) {
  return lower_parts(alone, apart_parts(alone), nullptr);
}

}  // namespace shardplan
