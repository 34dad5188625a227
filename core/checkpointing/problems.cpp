#include "checkpointing/problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "frameworks/registry.h"
#include "parallel/degrees.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What hooks around the step cannot be estimated with.
std::optional<DivisionProblem> offloading_problem(const Plan& plan) {
  if (plan.activation_offloading == ActivationOffloading::none) return std::nullopt;
  const auto problem = [](std::string reason, std::string_view instead) {
    return DivisionProblem{"activation_offloading", std::move(reason), std::string(instead)};
  };
  if (traits_of(plan).is_own_engine)
    return problem(
        "of PyTorch's hooks: the native engine sends what blocks keep by "
        "checkpointing.offload",
        "none, and +offload behind checkpointing (full+offload)");
  if (plan.workload.kind != WorkKind::train)
    return problem("estimated for training of one model alone", "none");
  if (plan.checkpoint_share.offload)
    return problem("beside checkpointing.offload: both send the inputs of checkpointed blocks",
                   "one of them");
  if (plan.compile)
    return problem("in a compiled step: what Inductor keeps under the hooks is not estimated",
                   "none, or compile false");
  if (!traits_of(plan).parameters_stay)
    return problem(
        fmt::format("under {}: it moves parameters after the trainer has noted where they are, so "
                    "that OffloadActivations (TRL 1.16) sends weights to the host too, which is "
                    "not estimated",
                    std::string_view(traits_of(plan).name)),
        "none, or single or ddp; full+offload sends checkpointed inputs alone");
  return std::nullopt;
}

/// Whether `model` has feed-forwards that can be tiled, and none that would be by accident: experts
/// beside shared ones of the same class.
bool has_tiled(const Model& model) {
  const auto& weights = model.parameters;
  if (std::any_of(weights.begin(), weights.end(),
                  [](const Parameter& p) { return p.kind == ParameterKind::expert; }))
    return false;
  return std::any_of(model.segments.begin(), model.segments.end(), [](const Segment& s) {
    const auto& ops = s.graph.ops();
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.tiled; });
  });
}

/// The operation that is the head and the loss in one; nullptr where the loss is over no head.
const Op* fused_head(const Model& model) {
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::fused_linear_loss) return &op;
  return nullptr;
}

/// What a loss that makes its gradients in the forward pass, part by part, cannot be had with.
std::optional<DivisionProblem> loss_problem(const Model& model, const Plan& plan) {
  if (plan.loss != LossKind::tiled) return std::nullopt;
  const auto problem = [](Said reason, std::string_view instead) {
    return DivisionProblem{"loss", std::move(reason), std::string(instead)};
  };
  if (plan.workload.kind != WorkKind::train)
    return problem("tiled is estimated for training alone", "cross_entropy");
  if (plan.trainer != &default_trainer())
    return problem(fmt::format("{} has no tiled loss: DeepSpeed's function is for a loop of one's "
                               "own",
                               plan.trainer->words),
                   "cross_entropy or fused_linear");
  const TiledMlps parts = traits_of(plan).tiled_mlps;
  if (parts == TiledMlps::stops)
    return problem("PyTorch stops under DDP: each part marks the head's gradient as ready",
                   "cross_entropy, or deepspeed");
  if (parts != TiledMlps::plain && parts != TiledMlps::last_part)
    return problem(fmt::format("tiled is not estimated under {}: DeepSpeed's engine alone knows of "
                               "gradients that are made in the forward pass",
                               std::string_view(traits_of(plan).name)),
                   "cross_entropy or fused_linear, or deepspeed");
  if (plan.parallel.tensor > 1 || plan.parallel.pipeline > 1)
    return problem("tiled is not estimated for a model that degrees divide",
                   "cross_entropy, or parallel.tensor and parallel.pipeline 1");
  if (plan.compile)
    return problem("tiled is not estimated in a compiled step", "cross_entropy, or compile false");
  if (plan.kernels.patches ||
      (plan.kernels.names & bit_of(KernelName::fused_linear_cross_entropy)) != 0)
    return problem("tiled beside Liger's loss, which takes its place", "one of them");
  const Op* head = fused_head(model);
  if (head == nullptr) return problem("the network has no head over a vocabulary", "cross_entropy");
  if (head->bias != kNone)
    return problem("tiled is not estimated for a head with a bias", "cross_entropy");
  return std::nullopt;
}

/// What a function that runs feed-forwards in parts cannot be estimated with.
std::optional<DivisionProblem> tiles_problem(const Model& model, const Plan& plan) {
  if (plan.mlp_tiles == 0) return std::nullopt;
  const auto problem = [](Said reason, std::string_view instead) {
    return DivisionProblem{"mlp_tiles", std::move(reason), std::string(instead)};
  };
  if (plan.workload.kind != WorkKind::train) return problem("estimated for training alone", "0");
  const FrameworkTraits& framework = traits_of(plan);
  if (framework.tiled_mlps == TiledMlps::stops)
    return problem(
        "PyTorch stops under DDP: each part marks the gradients of the feed-forward as ready "
        "(\"Expected to mark a variable ready only once\")",
        "0, or deepspeed");
  const bool sums = plan.trainer->tile_sums != TileSums::autograd;
  if (framework.tiled_mlps == TiledMlps::own_sums && !sums)
    return problem(
        "FSDP2 would give up the gathered weights after the first part; the functions "
        "of axolotl and verl tell it not to",
        "0, trainer axolotl or verl, or deepspeed");
  if (framework.tiled_mlps == TiledMlps::unknown)
    return problem(fmt::format("not estimated under {}", std::string_view(framework.name)),
                   "0, or single, deepspeed or fsdp2");
  if (plan.parallel.tensor > 1)
    return problem("not estimated for weights that a tensor degree divides",
                   "0, or parallel.tensor 1");
  if (plan.compile)
    return problem("not estimated in a compiled step: its function breaks the graph of each layer",
                   "0, or compile false");
  if (plan.activation_offloading != ActivationOffloading::none)
    return problem("beside activation_offloading: its hooks would send what each part keeps too",
                   "one of them");
  if (plan.checkpointing == Checkpointing::selective ||
      plan.checkpointing == Checkpointing::selective_op)
    return problem("not estimated beside a policy that keeps the results of products",
                   "0, or checkpointing none, full or blocks");
  if (!has_tiled(model))
    return problem("the network has no dense feed-forward that DeepSpeed's TiledMLP takes", "0");
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> checkpointing_problem(const Model& model, const Plan& plan) {
  if (auto found = offloading_problem(plan)) return found;
  if (auto found = tiles_problem(model, plan)) return found;
  if (auto found = loss_problem(model, plan)) return found;
  if (plan.workload.kind == WorkKind::inference) return std::nullopt;
  const CheckpointShare& share = plan.checkpoint_share;
  // Our own engine sends what blocks keep, whatever that is.
  if (share.offload && !plan.recomputes_blocks() && !traits_of(plan).is_own_engine)
    return DivisionProblem{"checkpointing.offload",
                           "true, and no block is checkpointed: what waits on the host is the "
                           "input of each that is",
                           "policy full, selective_op or blocks"};
  const std::int64_t blocks = block_count(model);
  const std::int64_t asked = plan.keeps_some_blocks() ? std::max(share.count, share.every) : 0;
  if (asked > blocks)
    return DivisionProblem{share.count > 0 ? "checkpointing.count" : "checkpointing.every",
                           fmt::format("{}, and the model has {} blocks", asked, blocks),
                           fmt::format("at most {}", blocks)};
  return traits_of(plan).checkpoint_problem(plan);
}

}  // namespace shardplan
