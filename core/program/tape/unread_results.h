// Results that selective checkpointing has kept and that the recomputation has not come to: it
// stops at the last tensor that is saved, and the rest stays where it is until the segment's
// backward pass is over (torch/utils/checkpoint.py, _CachedTorchDispatchMode).
#pragma once

#include <cstddef>
#include <vector>

#include "program/tape/storages.h"

namespace shardplan::tape {

class UnreadResults {
 public:
  explicit UnreadResults(Storages& storages) : storages_(storages) {}

  /// What operation `i` returns is there, read or not.
  void hold(std::size_t i, StorageId result) {
    storages_.ref(result);
    held_.push_back({i, result});
  }
  /// The recomputation has come to operation `end`: those before it have been read.
  void read_until(std::size_t end) {
    std::size_t left = 0;
    for (const Held& held : held_) {
      if (held.operation < end)
        storages_.unref(held.result);
      else
        held_[left++] = held;
    }
    held_.resize(left);
  }
  /// The segment's backward pass is over.
  void drop() {
    for (const Held& held : held_) storages_.unref(held.result);
    held_.clear();
  }

 private:
  struct Held {
    std::size_t operation = 0;
    StorageId result = kExternal;
  };
  Storages& storages_;
  std::vector<Held> held_;
};

}  // namespace shardplan::tape
