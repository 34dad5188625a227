// What is on a GPU before the first step of Megatron-LM, and what that step makes.
#pragma once

#include <vector>

#include "frameworks/megatron/buffers.h"
#include "lowering/segments.h"
#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// A tensor of `category` for each part of a parameter that this rank updates, in the optimizer's
/// order: the buffers' one, dense parameters of all chunks before experts
/// (megatron/core/optimizer/distrib_optimizer.py, _build_optimizer_group_ranges).
std::vector<Event> shard_tensors(const std::vector<GradientBuffers>& chunks, Category category,
                                 std::int64_t bytes_each);

/// States of the same parts: what one is updated with is made when it is updated first.
std::vector<Event> shard_states(const std::vector<GradientBuffers>& chunks, const Plan& plan);

/// What building a stage allocates and frees: `residents` but workspaces and states, which the
/// first step makes. `moved`: modules make each parameter on its own, these buffers come beside
/// them and take their place (param_and_grad_buffer.py), and masters are widened copies of copies.
std::vector<Event> build_of(const Model& own, const Plan& plan,
                            const std::vector<GradientBuffers>* moved,
                            const std::vector<Event>& residents);

/// What of `residents` is there when a stage is built: all but workspaces and states.
std::int64_t built_bytes(const std::vector<Event>& residents);

/// The workspaces among `residents` but these: the first forward pass makes them.
std::vector<Event> workspaces_but(const std::vector<Event>& residents,
                                  const std::vector<Event>& late);

/// Each repeat's first layer as a repeat of its own.
std::vector<SegmentRepeat> with_layers_apart(const std::vector<SegmentRepeat>& repeats);

}  // namespace shardplan
