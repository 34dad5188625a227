#include "lowering/optimizer_memory.h"

#include <algorithm>

#include "optimizers/states.h"
#include "program/tape.h"

namespace shardplan {
namespace {

Updated updated(const OwnedTensor& t, Given given) {
  return {.given = given, .parameter = t.parameter, .numel = t.numel, .whole = t.numel};
}

/// The blocks of one kind of temporary: a list over all tensors, or those of the largest.
void append_temporaries(std::vector<Event>& list, const Temporary& temporary,
                        const std::vector<OwnedTensor>& owned, const Optimizer& optimizer,
                        const StateTypes& types, Given given) {
  const auto bytes_for = [&](const OwnedTensor& t) {
    return round_up(temporary_bytes(temporary, updated(t, given), optimizer, types),
                    kAllocationUnit);
  };
  if (temporary.of == Temporary::Of::all) {
    for (std::int64_t i = 0; i < temporary.count; ++i)
      for (const OwnedTensor& t : owned)
        append_tensors(list, Category::workspace, bytes_for(t), t.count);
    return;
  }
  std::int64_t largest = 0;
  for (const OwnedTensor& t : owned) largest = std::max(largest, bytes_for(t));
  append_tensors(list, Category::workspace, largest, temporary.count);
}

}  // namespace

OptimizerMemory optimizer_memory(const std::vector<OwnedTensor>& owned, const Optimizer& optimizer,
                                 DType states, Given given) {
  OptimizerMemory memory;
  const StateTypes types{states, states};
  for (const OwnedTensor& t : owned)
    for_each_state(updated(t, given), optimizer, types, [&](std::int64_t bytes, bool paged) {
      const std::int64_t block = round_up(bytes, kAllocationUnit);
      if (paged)
        memory.paged = checked_add(memory.paged, checked_mul(bytes, t.count));
      else
        append_tensors(memory.tensors, Category::optimizer_states, block, t.count);
    });
  memory.states = total_bytes(memory.tensors);
  for (const Temporary& temporary : variant_of(optimizer).temporaries)
    append_temporaries(memory.temporaries, temporary, owned, optimizer, types, given);
  return memory;
}

void emit_temporaries(ProgramBuilder& b, const std::vector<Event>& temporaries) {
  emit_allocs(b, temporaries);
  b.free(Category::workspace, total_bytes(temporaries));
}

Source states_source(const Optimizer& optimizer, Given given) {
  return optimizer.kind->evidence[static_cast<std::size_t>(given)].source;
}

}  // namespace shardplan
