#include "program/compiled/tied_head.h"

#include "model/tied_head.h"
#include "program/compiled/padding.h"

namespace shardplan::compiled {

TiedHead tied_head(const Model& model, const tape::GraphView& view, double balance, bool stays) {
  const auto [graph, product] = tied_product(model);
  if (product == nullptr) return {};
  const DType own = view.parameter_type(product->weight);
  const std::int64_t row = view.parameter(product->weight).shape.front();
  const std::int64_t results = elements(graph->value(product->out).extent, view.sizes());
  const ProductSize size{results / row, view.parameter(product->weight).shape.back(), row};
  const bool padded = padded_columns(row, own) != row && may_be_padded(size, balance);
  // Of fp32 the table's gradient waits all the same (RoBERTa and GPT-2, on an H200).
  const bool low = size_of(view.regime().compute) <= 2;
  const bool copies = low && both_take_copies(row, product->bias != kNone);
  return {product->weight, padded && copies && own == view.regime().compute, stays && copies};
}

}  // namespace shardplan::compiled
