#include "program/tape/saved_tensors.h"

#include <algorithm>
#include <cassert>

namespace shardplan::tape {

void SavedTensors::save(std::size_t node, StorageId id, const SavedView& view) {
  if (id == kExternal) return save_resident(node);
  reach(node);
  Node& n = nodes_[node];
  assert(n.count < n.ids.size());
  const bool of_module = modules_.takes(node, id, view);
  const bool sends = of_module || offloading_.takes(id, view);
  n.sent[n.count] = of_module ? modules_.send(node, id, view)
                    : sends   ? offloading_.send(id, view)
                              : kNone;
  if (!sends) storages_.ref(id);
  n.ids[n.count++] = sends ? kExternal : id;
}

void SavedTensors::bring_back(std::size_t node) {
  Node& n = nodes_[node];
  for (std::size_t k = 0; k < n.count; ++k)
    if (n.sent[k] != kNone)
      n.ids[k] =
          modules_.active() ? modules_.bring_back(n.sent[k]) : offloading_.bring_back(n.sent[k]);
}

void SavedTensors::hold(StorageId id) {
  if (id == kExternal || std::ranges::find(held_, id) != held_.end()) return;
  storages_.ref(id);
  held_.push_back(id);
}

void SavedTensors::lend(StorageId id) {
  if (id == kExternal || std::ranges::find(lent_, id) != lent_.end()) return;
  lends_input_ = lends_input_ || storages_.of(id).slot == kChainedInputSlot;
  if (storages_.of(id).slot == kChainedInputSlot) return;
  storages_.ref(id);
  lent_.push_back(id);
}

void SavedTensors::let_go() {
  for (const StorageId id : held_) storages_.unref(id);
  held_.clear();
}

void SavedTensors::release_last(std::size_t node) {
  Node& n = nodes_[node];
  storages_.unref(n.ids[--n.count]);
}

void SavedTensors::release(std::size_t node) {
  Node& n = nodes_[node];
  for (std::size_t k = 0; k < n.count; ++k) storages_.unref(n.ids[k]);
  n.count = 0;
}

}  // namespace shardplan::tape
