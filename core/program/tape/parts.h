// The parts that the walks over a graph share: what its values are, what lives, what autograd
// keeps, what is written down.
#pragma once

#include "program/tape/autocast_cache.h"
#include "program/tape/exchanges.h"
#include "program/tape/gradients.h"
#include "program/tape/graph_view.h"
#include "program/tape/saved_tensors.h"
#include "program/tape/storages.h"
#include "program/tape/tiled_part.h"
#include "program/tape/unread_results.h"
#include "program/tape/writer.h"

namespace shardplan::tape {

struct Parts {
  /// Of one run, written to `to`. All arguments outlive the parts.
  Parts(const Model& model, const Segment& segment, const Regime& regime, const Sizes& sizes,
        DType input, TapeMode how, const TapeOptions& surroundings, TapeRun& to);
  // The parts refer to each other.
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const Graph& graph() const { return view.graph(); }
  /// Autograd saves tensors in this forward pass.
  bool keeps() const { return mode == TapeMode::keep || mode == TapeMode::redo; }
  std::size_t place_of(const Op& op) const {
    return static_cast<std::size_t>(&op - graph().ops().data());
  }
  StorageId temporary(Extent extent, DType type) {
    return storages.allocate(view.bytes_of(extent, type), Category::activations);
  }
  StorageId temporary_bytes(std::int64_t bytes) {
    return storages.allocate(bytes, Category::activations);
  }
  /// The storage of what `op` returns. Selective checkpointing keeps that of some operations: the
  /// forward pass leaves it behind, and the recomputation takes it over.
  StorageId allocate_result(const Op& op, std::int64_t bytes);
  /// Whether selective checkpointing keeps what `op` returns.
  bool keeps_result(const Op& op) const;
  /// The library of autograd's thread asks for its workspace when the thread first multiplies.
  void ask_for_workspace();

  TapeMode mode;
  const TapeOptions& options;
  std::vector<bool> kept_results;  ///< by operation; empty: of none
  std::vector<TiledPart> tiles;    ///< in the order of operations
  TapeRun& run;
  GraphView view;
  TapeWriter writer;
  Storages storages;
  UnreadResults unread;
  AutocastCache casts;
  Offloading offloading;
  ModuleOffloading modules;
  SavedTensors saved;
  Gradients gradients;
  Exchanges exchanges;
  std::int64_t workspace;  ///< bytes that the first product of autograd's thread asks for
};

}  // namespace shardplan::tape
