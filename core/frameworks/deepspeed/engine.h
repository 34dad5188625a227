// What the DeepSpeed engine decides before it allocates: element sizes and the partition group.
// Symbols follow docs/explanation/memory.md: b model dtype, c communication, g accumulation, m
// master weights (bytes an element); N ranks of the partition group.
#pragma once

#include <cstdint>

#include "lowering/pipeline/stages.h"
#include "model/model.h"
#include "optimizers/states.h"
#include "plan/plan.h"

namespace shardplan {

struct Engine {
  std::int64_t ranks = 1;  ///< N
  /// Ranks that have the same experts, which divide those where experts are shared out; else 0.
  std::int64_t expert_ranks = 0;
  std::int64_t b = 2, c = 2, g = 2, m = 4;
  const Optimizer* optimizer = nullptr;   ///< the plan's
  StateTypes state_types;                 ///< of its states
  std::int64_t communication_dtypes = 1;  ///< torch_autocast reduces in two
  bool checks_overflow = false;           ///< gradients are searched for infinities
  bool overflow_copies = false;           ///< the check for infinities copies what it reads
  bool bf16_optimizer = false;            ///< stage 1, bf16 with fp32 accumulation: BF16_Optimizer
  std::int64_t trainable = 0;             ///< Ψ, elements
  std::int64_t largest = 0;               ///< L: numel of the largest trainable tensor
  std::int64_t frozen_bytes = 0;
  /// Stage 0 in 16 bits: FP16_UnfusedOptimizer, which wraps every optimizer but DeepSpeed's
  /// FusedAdam (engine.py, _configure_fp16_optimizer).
  bool unfused = false;
  const Stage* stage = nullptr;  ///< of a PipelineModule: the one this rank runs

  /// Those that a parameter is divided over at stage 3.
  std::int64_t ranks_of(const Parameter& p) const {
    return expert_ranks > 0 && p.kind == ParameterKind::expert ? expert_ranks : ranks;
  }
};

Engine engine_of(const Model& model, const Plan& plan);

/// The type of parameters in passes, and of their shards. Stage 3 makes the buffer on the host that
/// offloaded shards are moved to in the type that a parameter's placeholder has, and zero.Init's
/// bf16 does not survive a model.to(torch.float32) (stage3.py, self.dtype and
/// _create_param_groups_fp16_flat_cpu_memory: measured).
DType parameter_type(const Plan& plan);
/// The type in which the program hands its parameters to the engine.
DType built_type(const Plan& plan);

}  // namespace shardplan
