// What becomes of a tied head's gradient in the graph that has both uses of its table.
#pragma once

#include "model/model.h"
#include "program/tape/graph_view.h"

namespace shardplan::compiled {

struct TiedHead {
  ParameterId table = kNone;  ///< kNone: the head has a weight of its own
  /// The product of its gradient may be padded (padding.h): it is made at once, as adding the
  /// table's to a part of what it writes is no pattern of Inductor's.
  bool at_once = false;
  /// Between the head and the table the backward pass draws random numbers again, which Inductor
  /// takes for a mutation: nothing is moved or fused across one
  /// (torch/_inductor/pattern_matcher.py, get_mutation_region_id; "inductor_lookup_seed" has a name
  /// of what mutates).
  /// With a bias and even rows it is taken to wait all the same: so a run of BERT did.
  bool stays = false;
};

/// `balance`, `stays`: TapeOptions::product_balance and draws_again.
TiedHead tied_head(const Model& model, const tape::GraphView& view, double balance, bool stays);

}  // namespace shardplan::compiled
