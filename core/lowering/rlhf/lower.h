// An iteration of reinforcement learning or preference training as one program: the training steps,
// the generation and the scoring passes that one process runs in turn, beside all that stays.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lowering/rlhf/roles.h"
#include "program/program.h"

namespace shardplan {

/// One of the programs that make up an iteration, for what is asked of it alone (time).
struct RlhfPart {
  Phase phase = Phase::forward;
  const Role* role = nullptr;
  Program program;
  bool scores = false;           ///< a pass without autograd
  std::int64_t times = 1;        ///< in an iteration
  bool before_training = false;  ///< of the model that trains, ahead of its own pass
  /// Parameters that it leaves gathered until its model trains.
  std::int64_t left = 0;
};

/// Optimizer steps of an iteration, which go once over what was generated.
std::int64_t updates_of(const Rlhf& rlhf);

/// Samples without padding as whole rows, which `w` takes at once: as many as `tokens` have room
/// for, longer by what is left, so that no token is missing. Tokens of all rows together are a
/// multiple of 8, as each product wants of packed ones, which are one row; and each row's one of
/// `divided`.
void take_rows(Workload& w, std::int64_t tokens, std::int64_t divided);

/// The parts of an iteration in their order, each with its own residents.
std::vector<RlhfPart> rlhf_parts(const Rlhf& rlhf);

/// `order`: takes, for each time that a part's kernels are in the program, the part's number.
Program lower_rlhf(const Rlhf& rlhf, std::vector<std::size_t>* order = nullptr);

/// What a group on GPUs of its own does with the answers of all of the trainer's GPUs, of which
/// each of its ranks has a part: an iteration without an actor, which the two below make.
Rlhf alone_on_its_gpus(const Rlhf& rlhf, const RolesApart& group);
std::vector<RlhfPart> apart_parts(const Rlhf& alone);
Program lower_apart(const Rlhf& alone);

/// What a model keeps between its own phases: of one that trains all of its states, else weights.
struct RoleStates {
  const Role* role = nullptr;
  std::int64_t bytes = 0;  ///< of one GPU; of its host where the model is there while it is idle
};
std::vector<RoleStates> role_states(const Rlhf& rlhf);

}  // namespace shardplan
