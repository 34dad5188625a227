// What an optimizer keeps and needs over tensors of their own or shards of them.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/tensors.h"
#include "optimizers/description.h"
#include "program/program.h"

namespace shardplan {

struct OptimizerMemory {
  std::int64_t states = 0;         ///< resident on the GPU after the first step
  std::int64_t paged = 0;          ///< in managed memory, which the host must have room for
  std::vector<Event> tensors;      ///< `states`, block by block in the order they are made
  std::vector<Event> temporaries;  ///< at the worst moment of the step
};

/// States and temporaries of `optimizer` over `owned`, every block rounded to the allocation unit.
/// `states`: the plan's type for them. docs/explanation/memory.md, "Optimizers".
OptimizerMemory optimizer_memory(const std::vector<OwnedTensor>& owned, const Optimizer& optimizer,
                                 DType states, Given given);

/// Adds the states to what is resident. Those that are made with the optimizer exist before the
/// first step, block by block behind the parameters.
void add_resident_states(Program& program, const Optimizer& optimizer,
                         const OptimizerMemory& memory);

/// Emits the states that the first step makes.
void emit_made_states(ProgramBuilder& b, const Optimizer& optimizer, const OptimizerMemory& memory);

/// Emits the temporaries of an optimizer's step and frees them.
void emit_temporaries(ProgramBuilder& b, const std::vector<Event>& temporaries);

/// How sure the bytes of the states are.
Source states_source(const Optimizer& optimizer, Given given);

}  // namespace shardplan
