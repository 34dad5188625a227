#include "estimate/handover_time.h"

#include <algorithm>

#include "base/checked.h"
#include "timing/collective_time.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What the engine is given: tensors, and their bytes in the type that it computes in.
struct Handed {
  std::int64_t tensors = 0, bytes = 0;
};

/// Of an expert: what transformers joins is two tensors in a checkpoint.
std::int64_t tensors_of(const Parameter& p) {
  return p.name.ends_with("gate_up_proj") ? 2 : 1;
}

Handed handed(const Model& model, std::int64_t element, bool single_experts) {
  Handed all;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.adapter || p.copy) return;
    const bool stacked = p.kind == ParameterKind::expert && !p.shape.empty();
    const std::int64_t each =
        single_experts && stacked ? checked_mul(p.shape.front(), tensors_of(p)) : 1;
    all.tensors = checked_add(all.tensors, checked_mul(each, repeat));
    all.bytes = checked_add(all.bytes, checked_mul(checked_mul(p.numel, element), repeat));
  });
  return all;
}

/// Bytes of a message where the trainer does not say them: NeMo RL's 2 % of a GPU
/// (nemo_rl/utils/packed_tensor.py, get_target_packed_tensor_size).
std::int64_t message_bytes(const RolloutEngine& engine, const Cluster& cluster) {
  return engine.weight_bucket > 0 ? engine.weight_bucket
                                  : std::max<std::int64_t>(1, cluster.gpu.usable.count() / 50);
}

}  // namespace

Cluster engine_cluster(const RolloutEngine& engine, const Cluster& trainer) {
  if (!engine.gpus) return trainer;
  Cluster own = trainer;
  own.gpus_per_node = std::min(*engine.gpus, trainer.gpus_per_node);
  own.nodes = ceil_div(*engine.gpus, own.gpus_per_node);
  return own;
}

GroupShape handover_group(const Rlhf& rlhf) {
  const RolloutEngine& engine = *rlhf.rollout;
  const Plan& plan = rlhf.roles.front().plan;
  const Cluster own = engine_cluster(engine, plan.cluster);
  const bool all = plan.trainer->apart_handover.all_ranks;
  const std::int64_t machines = all ? plan.cluster.nodes : 1;
  return {.ranks = checked_add(all ? plan.cluster.world() : 1, *engine.gpus),
          .nodes = engine.same_machines ? std::max(machines, own.nodes)
                                        : checked_add(machines, own.nodes)};
}

double loading_seconds(const Model& model, const RolloutEngine& engine, bool single_experts) {
  const double own = engine.engine->host.tensor_seconds;
  return static_cast<double>(handed(model, 0, single_experts).tensors) *
         (own > 0 ? own : kVllm.host.tensor_seconds);
}

void add_broadcast(TimeEstimate& sum, const Rlhf& rlhf, const TimeRates& rates) {
  const Role& actor = rlhf.roles.front();
  const ApartHandover& how = actor.plan.trainer->apart_handover;
  const Handed all =
      handed(actor.model, size_of(rlhf.generation.precision.compute), how.single_experts);
  Event event;
  event.kind = Event::Kind::collective;
  const GroupShape group = handover_group(rlhf);
  // Where the sender is its node's only rank, all goes out by its own adapter, and on from there as
  // fast; with the others there it goes out by all of theirs.
  const bool alone = !how.all_ranks && group.nodes > 1 && !rlhf.rollout->same_machines;
  event.collective = alone ? Collective::send : Collective::broadcast;
  event.bytes = all.bytes;
  event.count = how.packed ? ceil_div(all.bytes, message_bytes(*rlhf.rollout, actor.plan.cluster))
                           : all.tensors;
  const double sent = collective_seconds(event, group, actor.plan.cluster, rates.links);
  const double loaded = loading_seconds(actor.model, *rlhf.rollout, how.single_experts);
  sum.step_seconds += sent + loaded;
  sum.exposed_communication_seconds += sent;
  sum.communication_seconds += sent;
  sum.idle_seconds += loaded;
}

}  // namespace shardplan
