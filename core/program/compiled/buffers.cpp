// Where what a unit makes lies, and when its place is free for another tensor.
#include "program/compiled/compiled_run.h"

#include <algorithm>

namespace shardplan::compiled {

Category CompiledRun::category_of(NodeId id) const {
  const Node& made = node(id);
  if (made.logits) return Category::logits_and_loss;
  // Copies of weights in the compute type.
  const bool weight = made.inputs == 1 && node(made.in[0]).kind == NodeKind::input &&
                      made.elements == node(made.in[0]).elements && !made.backward;
  return weight ? Category::other : Category::activations;
}

void CompiledRun::store(NodeId id) {
  const Node& made = node(id);
  if (made.gradient_of != kNone) {
    const ParameterId parameter = made.gradient_of;
    const std::int64_t bytes =
        view_.bytes_of(view_.parameter(parameter), view_.parameter_type(parameter));
    const std::int64_t whole = round_up(bytes, kAllocationUnit);
    writer_.emit(TapeEvent::Kind::gradient, Category::gradients, parameter, whole);
    returned_.push_back({TapeEvent::Kind::added, Category::gradients, parameter, whole});
    return;
  }
  if (storage_[at(id)] != kExternal) return;  // written over another
  if (made.elements > 0) storage_[at(id)] = take(bytes_of(id), category_of(id));
}

/// A storage of that size that is to spare, or a new one.
StorageId CompiledRun::take(std::int64_t bytes, Category category) {
  const std::int64_t whole = round_up(bytes, kAllocationUnit);
  const auto fits = [&](StorageId spare) { return storages_.of(spare).bytes == whole; };
  const auto found = std::find_if(spare_.begin(), spare_.end(), fits);
  if (found == spare_.end()) return storages_.allocate(bytes, category, options_.pool);
  const StorageId spare = *found;
  spare_.erase(found);
  return spare;
}

/// By the size of what the units of a pass are to write.
void CompiledRun::count_asked(const std::vector<Unit>& units) {
  asked_.clear();
  for (const Unit& unit : units)
    for (const NodeId id : unit.writes)
      if (node(id).gradient_of == kNone) ++asked_[round_up(bytes_of(id), kAllocationUnit)];
}

bool CompiledRun::is_asked_for(std::int64_t bytes) const {
  const auto asked = asked_.find(bytes);
  const auto fits = [&](StorageId spare) { return storages_.of(spare).bytes == bytes; };
  return asked != asked_.end() && asked->second > std::count_if(spare_.begin(), spare_.end(), fits);
}

/// Inductor's wrapper keeps a buffer for the next tensor of its size where that does not raise the
/// peak it expects (torch/_inductor/codegen/wrapper.py, AllocateLine.should_reuse_buffer), and
/// frees at once what no later one takes. Where all blocks are computed again that holds from block
/// to block.
bool CompiledRun::is_kept_for_another(std::int64_t bytes) const {
  return waits(bytes) || (keeps_buffers() && (next_asks_too() || is_asked_for(bytes)));
}

void CompiledRun::drop(NodeId id) {
  StorageId& dropped = storage_[at(id)];
  const bool own = dropped != kExternal && storages_.of(dropped).slot >= first_slot_;
  if (own && !kept_[at(id)] && is_kept_for_another(storages_.of(dropped).bytes))
    spare_.push_back(dropped);
  else
    storages_.unref(dropped);
  dropped = kExternal;
}

}  // namespace shardplan::compiled
