// Bytes of an optimizer's states and temporaries, from its description.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "formats/dtype.h"
#include "optimizers/description.h"

namespace shardplan {

/// What a plan and a framework make of StateType.
struct StateTypes {
  DType plan = DType::f32;
  DType gradient = DType::f32;
};

/// Bytes of one element; LoRA's matrices are fp32, and what is made like them.
std::int64_t size_of(StateType type, const StateTypes& types, const Updated& tensor);

/// On the GPU (or, offloaded, on the host), and in managed memory that moves between both.
struct StateBytes {
  std::int64_t resident = 0, paged = 0;
  std::int64_t total() const { return resident + paged; }
  StateBytes& operator+=(const StateBytes& more);
};

/// Calls visit(bytes, paged) for every state that `tensor` has, in the order they are made.
template <typename Visit>
void for_each_state(const Updated& tensor, const Optimizer& optimizer, const StateTypes& types,
                    Visit&& visit) {
  for (const State& state : optimizer.kind->states) {
    const std::int64_t elements =
        state.elements == nullptr ? tensor.numel : state.elements(tensor, optimizer);
    if (elements == 0) continue;
    const bool paged = state.paged_from > 0 && tensor.numel >= state.paged_from;
    visit(checked_mul(elements, size_of(state.type, types, tensor)), paged);
  }
}

/// Of all states of `tensor`, without an allocator's rounding.
StateBytes state_bytes(const Updated& tensor, const Optimizer& optimizer, const StateTypes& types);

/// Bytes of one of the blocks that `temporary` says, while `tensor` is updated.
std::int64_t temporary_bytes(const Temporary& temporary, const Updated& tensor,
                             const Optimizer& optimizer, const StateTypes& types);

/// All temporaries of one flat buffer's update.
std::int64_t flat_temporary_bytes(const Updated& buffer, const Optimizer& optimizer,
                                  const StateTypes& types);

}  // namespace shardplan
