// A head that multiplies by the table of the embeddings, in the graph that has both.
#pragma once

#include "model/model.h"
#include "program/tape/graph_view.h"

namespace shardplan::compiled {

struct TiedHead {
  ParameterId table = kNone;  ///< kNone: the head has a weight of its own
  /// The product of its gradient may be padded (padding.h): it is made at once, as adding the
  /// table's to a part of what it writes is no pattern of Inductor's.
  bool at_once = false;
};

/// `balance`: TapeOptions::product_balance.
TiedHead tied_head(const Model& model, const tape::GraphView& view, double balance);

}  // namespace shardplan::compiled
