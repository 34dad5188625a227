#include "lowering/optimizer_memory.h"

#include <algorithm>

#include "optimizers/states.h"
#include "program/tape.h"

namespace shardplan {
namespace {

Updated updated(const OwnedTensor& t, Given given) {
  return {.given = given, .parameter = t.parameter, .numel = t.numel, .whole = t.numel};
}

/// What the temporaries of one optimizer take of the tensors that a rank owns.
class TemporarySizes {
 public:
  TemporarySizes(const std::vector<OwnedTensor>& owned, const Optimizer& optimizer,
                 const StateTypes& types, Given given)
      : owned_(owned), optimizer_(optimizer), types_(types), given_(given) {}

  void append(std::vector<Event>& list) const {
    const std::span<const Temporary> all = variant_of(optimizer_).temporaries;
    for (const Temporary& t : all)
      if (t.of == Temporary::Of::all) append_all(list, t);
    const std::size_t worst = worst_tensor(all);
    for (const Temporary& t : all) {
      const std::int64_t bytes = t.of == Temporary::Of::all ? 0 : bytes_of(t, worst);
      if (bytes > 0) append_tensors(list, Category::workspace, bytes, t.count);
    }
  }

 private:
  /// One block of `t` while tensor `i` is updated.
  std::int64_t bytes_of(const Temporary& t, std::size_t i) const {
    const std::size_t of = t.of == Temporary::Of::previous ? before(i) : i;
    if (of >= owned_.size()) return 0;
    return round_up(temporary_bytes(t, updated(owned_[of], given_), optimizer_, types_),
                    kAllocationUnit);
  }

  /// The tensor that a loop updates before tensor `i`: of the same kind, as matrices decay and
  /// vectors do not, which makes two groups of them. None: as many as there are.
  std::size_t before(std::size_t i) const {
    const auto is_matrix = [&](std::size_t k) { return owned_[k].parameter->shape.size() > 1; };
    for (std::size_t k = i; k-- > 0;)
      if (is_matrix(k) == is_matrix(i)) return k;
    return owned_.size();
  }

  void append_all(std::vector<Event>& list, const Temporary& t) const {
    for (std::int64_t n = 0; n < t.count; ++n)
      for (std::size_t i = 0; i < owned_.size(); ++i)
        append_tensors(list, Category::workspace, bytes_of(t, i), owned_[i].count);
  }

  std::size_t worst_tensor(std::span<const Temporary> all) const {
    std::size_t worst = owned_.size();
    std::int64_t most = 0;
    for (std::size_t i = 0; i < owned_.size(); ++i) {
      std::int64_t sum = 0;
      for (const Temporary& t : all)
        if (t.of != Temporary::Of::all) sum += checked_mul(t.count, bytes_of(t, i));
      if (sum > most) {
        most = sum;
        worst = i;
      }
    }
    return worst;
  }

  const std::vector<OwnedTensor>& owned_;
  const Optimizer& optimizer_;
  const StateTypes& types_;
  Given given_;
};

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
  TemporarySizes(owned, optimizer, types, given).append(memory.temporaries);
  return memory;
}

void add_resident_states(Program& program, const Optimizer& optimizer,
                         const OptimizerMemory& memory) {
  if (!optimizer.kind->made_when_constructed)
    return ProgramBuilder(program).resident(Category::optimizer_states, memory.states);
  const auto append = [&](std::vector<Event>& to) {
    to.insert(to.end(), memory.tensors.begin(), memory.tensors.end());
  };
  append(program.resident);
  if (!program.build.empty()) append(program.build);
  program.model_bytes = checked_add(program.model_bytes, memory.states);
}

void emit_made_states(ProgramBuilder& b, const Optimizer& optimizer,
                      const OptimizerMemory& memory) {
  if (!optimizer.kind->made_when_constructed) b.once(1, memory.tensors);
}

void emit_temporaries(ProgramBuilder& b, const std::vector<Event>& temporaries) {
  emit_allocs(b, temporaries);
  b.free(Category::workspace, total_bytes(temporaries));
}

Source states_source(const Optimizer& optimizer, Given given) {
  return optimizer.kind->evidence[static_cast<std::size_t>(given)].source;
}

}  // namespace shardplan
