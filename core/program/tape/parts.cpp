#include "program/tape/parts.h"

#include <algorithm>
#include <utility>

#include "program/op_rules.h"
#include "program/tape/checkpoint.h"

namespace shardplan::tape {

std::vector<bool> kept_results(const Model& model, const Graph& graph, const TapeOptions& options) {
  if (options.kept == KeptResults::none) return {};
  const auto own_product = [&](const Op& op) {
    return op.kind == OpKind::linear &&
           model.parameters[static_cast<std::size_t>(op.weight)].quantized();
  };
  std::vector<bool> kept;
  kept.reserve(graph.ops().size());
  std::int64_t plain_products = 0;
  for (const Op& op : graph.ops()) {
    const bool product = is_product(op.kind) && !own_product(op);
    const bool counts = options.kept == KeptResults::most_products && product &&
                        op.kind == OpKind::linear && op.bias == kNone;
    if (counts) ++plain_products;
    kept.push_back(options.kept != KeptResults::untagged && product &&
                   !(counts && plain_products % options.product_share == 0));
  }
  return kept;
}

namespace {

std::vector<bool> left_results(const Model& model, const Graph& graph, TapeMode mode,
                               const TapeOptions& options) {
  const bool checkpointed = mode == TapeMode::discard || mode == TapeMode::redo;
  return checkpointed ? kept_results(model, graph, options) : std::vector<bool>{};
}

/// Tensors that a checkpoint keeps from the forward pass to the recomputation.
std::int32_t kept_slots(const Graph& graph, TapeMode mode, const TapeOptions& options,
                        const std::vector<bool>& results) {
  // Attention returns its row sums too.
  auto slots = static_cast<std::int32_t>(2 * std::ranges::count(results, true));
  if (replaces_input(graph, mode, options)) slots += 2;  // a part of the input, and an empty tensor
  return slots;
}

}  // namespace

Parts::Parts(const Model& model, const Segment& segment, const Regime& regime, const Sizes& sizes,
             DType input, TapeMode how, const TapeOptions& surroundings, TapeRun& to)
    : mode(how),
      options(surroundings),
      kept_results(left_results(model, segment.graph, how, surroundings)),
      tiles(tiled_parts(segment.graph, surroundings.tiles)),
      run(to),
      view(model, segment.graph, regime, sizes, input, surroundings.input_needs_grad,
           surroundings.shared_trains),
      writer(to, how, surroundings.module_calls),
      storages(writer, how, kept_slots(segment.graph, how, surroundings, kept_results)),
      unread(storages),
      offloading(storages, writer,
                 how == TapeMode::keep ? surroundings.offloading : ActivationOffloading::none),
      modules(storages, writer, segment.graph,
              how == TapeMode::keep ? surroundings.sent : SentModules{}, size_of(regime.compute)),
      saved(segment.graph.ops().size(), storages, offloading, modules),
      gradients(view, storages, writer),
      exchanges(view, writer, surroundings),
      workspace(surroundings.workspace) {
  if (surroundings.given_mask) view.give_masks();
  const std::size_t expected = segment.graph.ops().size() * 3;
  storages.reserve(expected);
  run.forward.reserve(expected);
  if (keeps()) run.backward.reserve(2 * expected);
}

StorageId Parts::allocate_result(const Op& op, std::int64_t bytes) {
  const Category category = view.category_of(op.out);
  if (!keeps_result(op)) return storages.allocate(bytes, category);
  const StorageId result = storages.allocate_kept(bytes, category);
  if (mode == TapeMode::redo && stops_early(options)) unread.hold(place_of(op), result);
  return result;
}

bool Parts::keeps_result(const Op& op) const {
  return !kept_results.empty() && kept_results[place_of(op)];
}

void Parts::ask_for_workspace() {
  if (const std::int64_t bytes = std::exchange(workspace, 0); bytes > 0)
    writer.emit(TapeEvent::Kind::workspace, Category::workspace, 0, bytes);
}

}  // namespace shardplan::tape
