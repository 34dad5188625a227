#include "program/tape/composites.h"

#include <array>
#include <utility>

#include "program/tape/generation.h"

namespace shardplan::tape {

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
