#include "program/tape/composites.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "program/tape/generation.h"

namespace shardplan::tape {
namespace {

/// Liger's: the logits of a chunk take about as much as the input of all tokens.
std::int64_t chunk_of_tokens(std::int64_t tokens, std::int64_t vocabulary, std::int64_t width) {
  const auto each = static_cast<std::uint64_t>(ceil_div(tokens, ceil_div(vocabulary, width)));
  return std::min(static_cast<std::int64_t>(std::bit_ceil(each)), tokens);
}

}  // namespace

void fused_loss_forward(Parts& p, std::size_t i) {
  if (!p.keeps()) return;
  const Op& op = p.graph().ops()[i];
  const Parameter& head = p.view.parameter(op.weight);
  const Extent in = p.view.extent_of(op.in[0]);
  const std::int64_t vocabulary = head.numel / in.per;
  const std::int64_t chunk = chunk_of_tokens(units(in.scale, p.view.sizes()), vocabulary, in.per);
  const std::int64_t weight = p.view.bytes_of(head, p.view.parameter_type(op.weight));
  const bool trains = p.view.trains(op.weight);
  p.saved.move_in(i, p.storages.allocate(p.view.bytes_of(in, p.view.state(op.in[0]).dtype),
                                         Category::logits_and_loss));
  if (trains) p.saved.move_in(i, p.storages.allocate(weight, Category::gradients));
  const StorageId logits = p.storages.allocate(
      checked_mul(checked_mul(chunk, vocabulary), size_of(p.view.regime().compute)),
      Category::logits_and_loss);
  if (trains)  // one chunk's product
    p.storages.unref(p.storages.allocate(weight, Category::workspace));
  p.storages.unref(logits);
}

void fused_loss_backward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  p.storages.ref(p.saved.at(i, 0));
  p.gradients.give(op.in[0], p.saved.at(i, 0));
  if (p.saved.count(i) > 1) p.saved.release_last(i);
  p.gradients.give_parameter(op.weight);
}

void vocabulary_loss_backward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  if (op.side.per > 0) {
    p.gradients.give(op.in[0], p.gradients.allocate_like(op.in[0], p.view.state(op.in[0]).dtype));
    return;
  }
  p.storages.ref(p.saved.at(i, 0));
  p.gradients.give(op.in[0], p.saved.at(i, 0));
}

void math_attention_forward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  if (p.mode == TapeMode::infer) return math_attention_inference(p, op);
  const Extent queries = p.view.extent_of(op.in[0]);
  const Extent keys{queries.per, p.view.extent_of(op.in[1]).scale};
  const Extent scores{op.side.per, op.work.scale};
  const StorageId scaled_queries = p.temporary(queries, DType::f32);
  const StorageId scaled_keys = p.temporary(keys, DType::f32);
  const StorageId values = p.temporary(keys, DType::f32);
  const StorageId logits = p.temporary(scores, DType::f32);
  const StorageId probabilities = p.temporary(scores, DType::f32);
  p.storages.unref(logits);
  for (const StorageId id : {scaled_queries, scaled_keys, values, probabilities}) {
    if (p.keeps()) p.saved.save(i, id);
    p.storages.unref(id);
  }
}

void math_attention_backward(Parts& p, const Op& op) {
  const Extent queries = p.view.extent_of(op.in[0]);
  const Extent keys{queries.per, p.view.extent_of(op.in[1]).scale};
  const Extent scores{op.side.per, op.work.scale};
  const StorageId d_values = p.temporary(keys, DType::f32);
  const StorageId d_probabilities = p.temporary(scores, DType::f32);
  const StorageId d_scores = p.temporary(scores, DType::f32);
  p.storages.unref(p.temporary(scores, DType::f32));  // softmax: gradient·output
  p.storages.unref(d_probabilities);
  const StorageId d_queries = p.temporary(queries, DType::f32);
  const StorageId d_keys = p.temporary(keys, DType::f32);
  p.storages.unref(d_scores);
  p.gradients.give(op.in[0], d_queries);
  for (const auto& [in, all] : {std::pair{op.in[1], d_keys}, std::pair{op.in[2], d_values}}) {
    const StorageId sum = p.gradients.allocate_like(in, DType::f32);
    p.storages.unref(all);
    p.gradients.give(in, sum);
  }
}

}  // namespace shardplan::tape
