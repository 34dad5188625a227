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
  if (made.elements > 0) storage_[at(id)] = take(id);
}

/// A storage of that size that is to spare, or a new one.
StorageId CompiledRun::take(NodeId id) {
  if (!plan_.takes.empty()) {
    const auto left = waiting_.find(plan_.takes[at(id)]);
    if (left != waiting_.end()) return waiting_.extract(left).mapped();
  }
  const std::int64_t whole = round_up(bytes_of(id), kAllocationUnit);
  const auto fits = [&](StorageId spare) { return storages_.of(spare).bytes == whole; };
  const auto found = std::find_if(spare_.begin(), spare_.end(), fits);
  if (found == spare_.end())
    return storages_.allocate(bytes_of(id), category_of(id), options_.pool);
  const StorageId spare = *found;
  spare_.erase(found);
  return spare;
}

/// Between blocks that are computed again others may be kept, which leave what waits to the next.
/// Those in a row are planned as so many; of others one between two of the same.
void CompiledRun::plan(const std::vector<Unit>& units, const std::vector<std::size_t>& last) {
  plan_ = {};
  if (!plans_buffers() || !in_backward_) return;
  std::vector<bool> stored;
  for (const StorageId id : storage_) stored.push_back(id != kExternal);
  const auto over = [&](const Unit& unit, const Made& made, const std::vector<NodeId>& dying) {
    return written_over(unit, made, dying);
  };
  const bool in_row = options_.blocks_in_row > 0 && follows_places();
  const std::int64_t passes = std::max(options_.blocks_in_row, kBetweenTwo);
  plan_ = plan_buffers({trace_.graph, pass_, units, last, std::move(stored), passes, in_row,
                        options_.believed_room, over});
  for (const LeftBuffer& left : plan_.carried) {
    const std::int64_t bytes = round_up(bytes_of(left.by), kAllocationUnit);
    const Category category = category_of(left.by);
    waiting_.emplace(left, storages_.adopt(bytes, kCarriedSlot, category, options_.pool));
    run_.carried.push_back({TapeEvent::Kind::alloc, category, kCarriedSlot, bytes, options_.pool});
  }
}

/// The next run finds as much as this one has found.
void CompiledRun::leave_waiting() {
  for (const TapeEvent& found : run_.carried) {
    const auto waits = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& waiting) {
      const tape::Storage& s = storages_.of(waiting.second);
      return s.bytes == found.bytes && s.category == found.category;
    });
    const StorageId id = waits != waiting_.end()
                             ? waiting_.extract(waits).mapped()
                             : storages_.allocate(found.bytes, found.category, found.pool);
    if (storages_.of(id).slot != kCarriedSlot) run_.left.push_back(storages_.of(id).slot);
  }
  for (const auto& [left, id] : waiting_) storages_.unref(id);
}

/// Inductor's wrapper keeps a buffer for a later tensor of its size where that does not raise the
/// peak it expects, and frees at once what no later one takes.
void CompiledRun::drop(NodeId id) {
  StorageId& dropped = storage_[at(id)];
  const auto made_here = [&](std::int32_t slot) {
    return slot >= first_slot_ || slot == kCarriedSlot;
  };
  const bool own = dropped != kExternal && made_here(storages_.of(dropped).slot) && !kept_[at(id)];
  if (own && !plan_.waits.empty() && plan_.waits[at(id)])
    waiting_.emplace(LeftBuffer{id}, dropped);
  else if (own && plan_.waits.empty() && waits(storages_.of(dropped).bytes))
    spare_.push_back(dropped);
  else
    storages_.unref(dropped);
  dropped = kExternal;
}

}  // namespace shardplan::compiled
