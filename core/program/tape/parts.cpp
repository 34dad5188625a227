#include "program/tape/parts.h"

#include "program/op_rules.h"
#include "program/tape/checkpoint.h"

namespace shardplan::tape {
namespace {

/// Tensors that a checkpoint keeps from the forward pass to the recomputation.
std::int32_t kept_slots(const Graph& graph, TapeMode mode, const TapeOptions& options) {
  std::int32_t slots = 0;
  if (options.selective)
    for (const Op& op : graph.ops())
      if (is_product(op.kind)) slots += 2;               // attention returns its row sums too
  if (replaces_input(graph, mode, options)) slots += 2;  // a part of the input, and an empty tensor
  return slots;
}

}  // namespace

Parts::Parts(const Model& model, const Segment& segment, const Regime& regime, const Sizes& sizes,
             DType input, TapeMode how, const TapeOptions& surroundings, TapeRun& to)
    : mode(how),
      options(surroundings),
      run(to),
      view(model, segment.graph, regime, sizes, input, surroundings.input_needs_grad),
      writer(to, how, surroundings.module_calls),
      storages(writer, how, kept_slots(segment.graph, how, surroundings)),
      saved(segment.graph.ops().size(), storages),
      gradients(view, storages, writer),
      exchanges(view, writer, surroundings) {
  const std::size_t expected = segment.graph.ops().size() * 3;
  storages.reserve(expected);
  run.forward.reserve(expected);
  if (keeps()) run.backward.reserve(2 * expected);
}

StorageId Parts::allocate_result(const Op& op, std::int64_t bytes) {
  const Category category = view.category_of(op.out);
  if (!options.selective || !is_product(op.kind)) return storages.allocate(bytes, category);
  return storages.allocate_kept(bytes, category);
}

}  // namespace shardplan::tape
