// What DeepSpeed's optimizer updates on one rank, and the states that follow from the optimizer's
// description. docs/explanation/memory.md, "DeepSpeed ZeRO: states".
#pragma once

#include <vector>

#include "frameworks/deepspeed/engine.h"
#include "optimizers/states.h"
#include "program/program.h"

namespace shardplan {

/// Stage 0: every trainable tensor. FP16_Optimizer copies those of a group into a vector and
/// FP16_UnfusedOptimizer takes each alone; states that are not as large as their tensors are
/// the latter's (runtime/fp16).
std::vector<Updated> whole_tensors(const Model& model);

/// BF16_Optimizer and stages 1 and 2: the part of `rank` of every optimizer group. `partitions`:
/// elements of this rank's part of each, where the optimizer treats all parameters alike.
/// `updates_special`: whether the engine has get_flat_partition, which runs Muon.
std::vector<Updated> partitions_of(const Model& model, const Engine& engine, std::int64_t rank,
                                   const std::vector<std::int64_t>& partitions,
                                   bool updates_special);

/// Whether weights that decay and those that do not are groups of their own to the engine.
bool groups_by_decay(const Plan& plan);

/// Stage 3: `elements` in one rank's shards, those of parameters that the optimizer treats in its
/// own way apart.
std::vector<Updated> shards_of(const Model& model, const Engine& engine, std::int64_t elements);

/// Stage 3: what the optimizer takes one after the other. Parameters that it treats in its own way,
/// those whose weights decay, the others and experts that fewer ranks divide are groups of their
/// own, each cut where it has `limit` elements.
std::vector<Updated> sub_groups(const Model& model, const Plan& plan, const Engine& engine,
                                std::int64_t limit);

/// States of all `updated`.
StateBytes states_of(const Engine& engine, const std::vector<Updated>& updated);

/// The blocks on the GPU in the order in which they are made.
std::vector<Event> state_blocks(const Engine& engine, const std::vector<Updated>& updated);

/// Makes them resident, or, in managed memory, the host's.
void add_states(Program& program, const Engine& engine, const StateBytes& states);

/// What the step needs beside the states: for the largest of `updated`, or a list of all.
std::int64_t step_temporaries(const Engine& engine, const std::vector<Updated>& updated);

/// Of a sub-group of `elements`, taken for parameters of the common kind.
std::int64_t sub_group_states(const Engine& engine, std::int64_t elements);

/// What one parameter's own update needs (Muon's products), at most; they run on whole gradients.
std::int64_t special_temporaries(const Model& model, const Engine& engine);
/// Its kernels, of a rank's part of all parameters.
std::vector<Kernel> special_kernels(const Model& model, const Engine& engine);

}  // namespace shardplan
