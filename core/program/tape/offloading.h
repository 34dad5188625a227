// What hooks around a step do with the tensors that autograd keeps: each goes to the host when it
// is saved, and comes back when its node runs (OffloadActivations of TRL 1.16,
// trl/models/activation_offloading.py, which was torchtune's).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/checkpointing.h"
#include "program/tape/storages.h"

namespace shardplan::tape {

/// How an operation sees a tensor that it saves.
struct SavedView {
  std::int64_t bytes = 0;    ///< 0: all of its storage
  ValueId part = kNone;      ///< a slice, which hooks tell from others of its storage
  bool strided = false;      ///< not contiguous: hooks copy it before they send it
  std::int64_t element = 0;  ///< bytes of a number; 0: those of what operations compute
};

class Offloading {
 public:
  Offloading(Storages& storages, TapeWriter& writer, ActivationOffloading how)
      : storages_(storages), writer_(writer), how_(how) {}

  bool active() const { return how_ != ActivationOffloading::none; }
  /// Until resumed, saved tensors are left alone: the head's (NoOpManager).
  void pause(bool paused) { paused_ = paused; }
  /// A parameter or a shared tensor is saved: it stays where it is, but hooks count it.
  void pass() { count_ += paused_ ? 0 : 1; }

  /// Whether a tensor that is saved now goes to the host. Of one that is on its way already, and
  /// of a small one, the node keeps the GPU's.
  bool takes(StorageId id, const SavedView& view);
  /// Sends it; returns its number.
  std::int32_t send(StorageId id, const SavedView& view);
  /// The storage that a node reads it from, with a reference for the node.
  StorageId bring_back(std::int32_t number);

  /// A node's tensors are there and it is about to run; it has run. What it brought back lives
  /// until the next one that brought something has run, behind events that the copying stream
  /// waits for. What lives on, as a gradient that was written over it, is left to the allocator,
  /// which gives it again when the computing stream has passed (record_stream).
  void begin_node();
  void end_node();

  /// The forward pass of a segment is over: what is still being sent goes when the next segment
  /// has saved as many tensors more, or, in the last segment, when the backward pass has begun.
  std::vector<TailedFree> leave_sending();
  /// The same of the backward pass: what the last node brought back.
  std::vector<TailedFree> leave_brought();
  std::int64_t count() const { return count_; }
  std::int64_t pinned_bytes() const { return pinned_; }

 private:
  struct Sent {
    std::int64_t bytes = 0;
    Category category = Category::activations;
    StorageId on_gpu = kExternal;  ///< what is being sent, while it is kept for that
    std::int64_t place = 0;        ///< in the order of saved tensors
    std::int64_t sent_before = 0;  ///< bytes, up to and with it
  };
  /// A tensor that hooks would know again.
  struct Known {
    StorageId id = kExternal;
    ValueId part = kNone;
    std::int64_t place = 0;
    bool copied = false;  ///< what is kept while it is sent is a copy
  };

  bool lies_where_known_lay(StorageId id);
  bool streams() const { return how_ == ActivationOffloading::streams; }
  void evict();
  void drop(Sent& sent);

  Storages& storages_;
  TapeWriter& writer_;
  ActivationOffloading how_;
  bool paused_ = false;
  std::int64_t count_ = 0;  ///< tensors that were saved
  std::int64_t sent_bytes_ = 0;
  std::int64_t pinned_ = 0;
  std::vector<Sent> sent_;
  std::vector<std::int32_t> sending_;  ///< the stash: those whose tensor is kept, oldest first
  std::vector<Known> known_;
  std::vector<StorageId> brought_, before_;  ///< by this node, and by the one before
  bool first_node_ = true;
  bool drained_ = false;  ///< what the segment before has left is gone
};

}  // namespace shardplan::tape
