// What autograd's nodes keep for the backward pass, one node an operation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "program/tape/module_offloading.h"
#include "program/tape/offloading.h"
#include "program/tape/storages.h"

namespace shardplan::tape {

class SavedTensors {
 public:
  SavedTensors(std::size_t operations, Storages& storages, Offloading& offloading,
               ModuleOffloading& modules)
      : storages_(storages),
        offloading_(offloading),
        modules_(modules),
        nodes_(operations),
        begin_(operations) {}

  /// The node takes a reference, or sends the tensor to the host; nothing for kExternal.
  void save(std::size_t node, StorageId id, const SavedView& view = {});
  /// The node keeps what is there anyway, such as a weight: hooks are called for it all the same.
  void save_resident(std::size_t node) {
    reach(node);
    offloading_.pass();
  }
  /// It takes over the caller's.
  void move_in(std::size_t node, StorageId id, const SavedView& view = {}) {
    save(node, id, view);
    storages_.unref(id);
  }
  /// What the node sent to the host is there again.
  void bring_back(std::size_t node);
  /// A node refers to it beside what it has saved: it lives as long as the graph, which neither a
  /// checkpoint nor the node's own backward changes.
  void hold(StorageId id);
  /// The graph goes.
  void let_go();
  const std::vector<StorageId>& held() const { return held_; }
  /// A recomputation's graph that stays refers to it. The chained input is noted only: the caller
  /// frees it.
  void lend(StorageId id);
  const std::vector<StorageId>& lent() const { return lent_; }
  bool lends_input() const { return lends_input_; }
  std::size_t count(std::size_t node) const { return nodes_[node].count; }
  StorageId at(std::size_t node, std::size_t k) const { return nodes_[node].ids[k]; }
  /// The node drops what it kept last, or all of it.
  void release_last(std::size_t node);
  void release(std::size_t node);
  /// How often a tensor was saved: each time a hook is called.
  std::int32_t times() const { return times_; }
  /// One behind the last node that has saved something; 0: none has.
  std::size_t end() const { return end_; }
  /// The first such node; the number of operations: none has.
  std::size_t begin() const { return begin_; }

 private:
  struct Node {
    std::array<StorageId, 8> ids{};
    std::array<std::int32_t, 8> sent{};  ///< its number on the host; kNone: it never left
    std::size_t count = 0;
  };
  void reach(std::size_t node) {
    ++times_;
    begin_ = std::min(begin_, node);
    end_ = std::max(end_, node + 1);
  }

  Storages& storages_;
  Offloading& offloading_;
  ModuleOffloading& modules_;
  std::vector<Node> nodes_;
  std::vector<StorageId> held_, lent_;  ///< each once
  bool lends_input_ = false;
  std::size_t begin_, end_ = 0;
  std::int32_t times_ = 0;
};

}  // namespace shardplan::tape
