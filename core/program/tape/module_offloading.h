// The saved tensors of chosen modules on the host (plan/sent_modules.h). Those of a module go when
// it has run. On the GPU they are taken to be there until the next layer has run: the copy is asked
// for beside the step, and the allocator has their memory when it is done. Backward, a module's
// come back when the same module of the layer behind has run; so a whole layer's are there at any
// time.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/sent_modules.h"
#include "program/tape/offloading.h"

namespace shardplan::tape {

class ModuleOffloading {
 public:
  /// Of one pass over `graph`. `element`: bytes of what operations compute.
  ModuleOffloading(Storages& storages, TapeWriter& writer, const Graph& graph,
                   const SentModules& sent, std::int64_t element);

  bool active() const { return sent_.active; }
  /// Whether what operation `node` saves goes to the host.
  bool takes(std::size_t node, StorageId id, const SavedView& view) const;
  /// Sends it, and returns its number: that of a tensor which another linear of the same module has
  /// saved, since the module has one linear.
  std::int32_t send(std::size_t node, StorageId id, const SavedView& view);
  /// The storage that a node reads it from, with a reference for the node.
  StorageId bring_back(std::int32_t number);

  /// The forward pass of a layer is over: frees what the layer before has sent, and leaves its own.
  std::vector<TailedFree> leave_sending();
  void begin_backward();
  void end_backward();
  std::int64_t pinned_bytes() const { return pinned_; }

 private:
  struct Sent {
    StorageId id = kExternal;  ///< what was saved
    ValueId part = kNone;
    SentModule module = SentModule::none;
    std::int64_t bytes = 0;
    Category category = Category::activations;
    StorageId back = kExternal;  ///< in the backward pass
  };
  std::int64_t bytes_of(StorageId id, const SavedView& view) const;

  Storages& storages_;
  TapeWriter& writer_;
  SentModules sent_;
  std::int64_t element_;
  std::vector<SentModule> modules_;  ///< by operation; empty: none sends
  std::vector<Sent> tensors_;
  std::int64_t bytes_ = 0, pinned_ = 0;
};

/// The module of each operation of a layer's graph.
std::vector<SentModule> modules_of(const Graph& graph);

}  // namespace shardplan::tape
