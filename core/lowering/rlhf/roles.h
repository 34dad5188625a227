// Reinforcement learning and preference training: the models that take part, and what each does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lowering/rlhf/algorithms.h"
#include "model/model.h"
#include "plan/plan.h"
#include "rollout/engine.h"

namespace shardplan {

/// Where the scores of a reference come from.
enum class ReferenceModel : std::uint8_t {
  copy,         ///< a model of its own
  base,         ///< the model that trains, with its adapters off
  precomputed,  ///< made before training
  none,         ///< nothing asks for them
};

/// What of a model is on the host outside of its phases.
enum class Idle : std::uint8_t {
  gpu,         ///< nothing
  parameters,  ///< what is no optimizer state: parameters, gradients
  optimizer,   ///< optimizer states and master parameters
  host,        ///< all
};
std::string_view name_of(Idle idle);

enum class RoleKind : std::uint8_t { actor, critic, reference, reward };
std::string_view name_of(RoleKind role);

/// A model's part. Its plan is that of a training step whether it trains or is only asked: batch
/// and sequence are those of the training step.
struct Role {
  RoleKind kind = RoleKind::actor;
  Model model;
  Plan plan;
  bool trains = false;
  Idle idle = Idle::gpu;
  bool idle_on_host() const { return idle == Idle::host; }
};

/// DeepSpeed-Chat's hybrid engine (deepspeed/runtime/hybrid_engine.py).
struct HybridEngine {
  std::int64_t max_out_tokens = 512;
  std::int64_t inference_tp_size = 1;
  bool release_inference_cache = false;
  bool pin_parameters = true;
  std::int64_t tp_gather_partition_size = 8;  ///< layers gathered at once
};

/// A reward model in an engine of its own on the trainer's GPUs, which wakes once all answers are
/// there.
struct Judge {
  RolloutEngine engine;
  Model model;  ///< with a KV cache
  Plan plan;    ///< how it is asked
};

/// Models that share GPUs of their own, beside the trainer's.
struct RolesApart {
  std::vector<Role> roles;  ///< at least one
};

struct Rlhf {
  Algorithm algorithm = Algorithm::ppo;
  std::vector<Role> roles;         ///< the actor, or what trains in its place, first
  std::vector<RolesApart> apart;   ///< on other GPUs than these
  std::optional<Model> scorer;     ///< the actor's graph where its own scores differ
  std::optional<Model> generator;  ///< the actor's graph with a KV cache
  Plan generation;                 ///< how it generates
  std::optional<HybridEngine> hybrid;
  std::optional<RolloutEngine> rollout;  ///< generates in place of the actor's own model
  std::optional<Judge> judge;            ///< in place of a role that scores answers
  ReferenceModel reference = ReferenceModel::copy;
  std::int64_t rank = 0;            ///< whose program is made, of several pipeline stages
  std::int64_t scoring_batch = 0;   ///< samples scored at once; 0: as many as the trainer does
  std::int64_t scoring_tokens = 0;  ///< tokens without padding in their place; 0: none

  std::vector<const Role*> all_roles() const {
    std::vector<const Role*> all;
    for (const Role& role : roles) all.push_back(&role);
    for (const RolesApart& group : apart)
      for (const Role& role : group.roles) all.push_back(&role);
    return all;
  }
  const AlgorithmDescription& description() const { return description_of(algorithm); }
};

/// Whether the algorithm generates and scores before it trains.
constexpr bool generates(Algorithm a) {
  return description_of(a).generates;
}

}  // namespace shardplan
