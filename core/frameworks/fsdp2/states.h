// What FSDP2 keeps of a network, or of a pipeline stage of one, and the optimizer's step over it.
#pragma once

#include <cstdint>
#include <vector>

#include "frameworks/fsdp2/units.h"
#include "lowering/optimizer_memory.h"
#include "lowering/packed_weights.h"
#include "lowering/tensors.h"
#include "program/program.h"

namespace shardplan {

struct Fsdp2States {
  std::vector<Event> parameters;       ///< shards
  std::vector<Event> wholes;           ///< what each of them is cut from
  std::vector<std::int32_t> block_of;  ///< each one's block, as a segment; kNone: of none
  std::int64_t trained = 0;            ///< bytes of those that train
  std::vector<OwnedTensor> owned;      ///< this rank's parts of them
  OptimizerMemory optimizer;
  /// Weights that are gathered in 8 bits: how many, and bytes of their shards.
  std::int64_t narrow_tensors = 0, narrow_bytes = 0;
};

/// Of the parameters of `model`.
Fsdp2States fsdp2_states(const Model& model, const Plan& plan, const Fsdp2Units& units);

/// What is there before a step; on the host with cpu_offload.
void add_fsdp2_states(Program& program, ProgramBuilder& b, const Plan& plan, const ModelRun& run,
                      const Fsdp2States& states, const PackedWeights& packed);

/// Clipping and the optimizer. `gradients`: bytes of their shards, which go.
void emit_fsdp2_step(ProgramBuilder& b, const Model& model, const Plan& plan,
                     const Fsdp2States& states, std::int64_t gradients);

}  // namespace shardplan
