// A head that multiplies by the table of the embeddings.
#pragma once

#include "model/model.h"

namespace shardplan {

struct TiedProduct {
  const Graph* graph = nullptr;
  const Op* op = nullptr;  ///< in `graph`; nullptr: no linear multiplies by a table of embeddings
};

/// The first in execution order.
TiedProduct tied_product(const Model& model);

inline bool has_tied_head(const Model& model) {
  return tied_product(model).op != nullptr;
}

}  // namespace shardplan
