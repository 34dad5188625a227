#include "program/tape/generation.h"

namespace shardplan::tape {
namespace {

/// The blocks that `cache`, of an earlier token, made.
void free_cached(Parts& p, const Op& cache, DType type) {
  const Sizes& sizes = p.view.sizes();
  if (sizes.cached == 0) return;
  const std::int64_t each = checked_mul(p.view.extent_of(cache.out).per, sizes.batch);
  const std::int64_t old =
      round_up(checked_mul(checked_mul(each, sizes.cached), size_of(type)), kAllocationUnit);
  p.writer.emit(TapeEvent::Kind::free, Category::kv_cache, kCacheSlot, old);
}

}  // namespace

void append_to_cache(Parts& p, const Op& op) {
  ValueState& out = p.view.state(op.out);
  const DType type = p.view.regime().cache.value_or(out.dtype);
  out.storage =
      p.storages.allocate_exported(p.view.bytes_of(op.out, type), kCacheSlot, Category::kv_cache);
  if (op.window == 0) {
    free_cached(p, op, type);
  } else if (op.part == CachePart::values) {
    for (const Op& other : p.graph().ops())
      if (other.kind == OpKind::cache) free_cached(p, other, type);
  }
}

void math_attention_inference(Parts& p, const Op& op) {
  const Extent queries = p.view.extent_of(op.in[0]);
  const Extent keys{queries.per, p.view.extent_of(op.in[1]).scale};
  const Extent scores{op.side.per, op.work.scale};
  const StorageId all_keys = p.temporary(keys, DType::f32);
  const StorageId all_values = p.temporary(keys, DType::f32);
  const StorageId scaled_queries = p.temporary(queries, DType::f32);
  const StorageId scaled_keys = p.temporary(keys, DType::f32);
  const StorageId logits = p.temporary(scores, DType::f32);
  p.storages.unref(scaled_keys);
  const StorageId probabilities = p.temporary(scores, DType::f32);
  p.storages.unref(p.temporary(scores, DType::b1));
  for (const StorageId id : {logits, probabilities, scaled_queries, all_values, all_keys})
    p.storages.unref(id);
}

void allocate_side_results(Parts& p, const Op& op, bool attends, DType type) {
  const std::int64_t side = elements(op.side, p.view.sizes());
  const Category category = p.view.category_of(op.out);
  if (op.kind == OpKind::layer_norm) {
    const StorageId mean = p.storages.allocate(checked_mul(side, 4), category);
    p.storages.unref(p.storages.allocate(checked_mul(side, 4), category));
    p.storages.unref(mean);
  } else if (attends && p.view.is_masked(op)) {
    p.storages.unref(p.storages.allocate(p.view.bytes_of(op.mask, type), category));
  } else if (attends && op.scores_bias == kNone) {
    p.storages.unref(p.storages.allocate(checked_mul(side, 4), category));
  }
}

}  // namespace shardplan::tape
