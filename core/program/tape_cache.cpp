// A forward pass for generation: the KV cache, and what has no backward pass to be kept for.
#include <algorithm>

#include "program/tape_state.h"

namespace shardplan {

/// torch.cat([cached, new]) makes all of it anew. DynamicLayer binds its name to the result at
/// once; a sliding layer makes keys and values before it lets go of either, and keeps a slice of
/// what it made, whose storage stays whole (transformers/cache_utils.py).
void TapeState::append_to_cache(const Op& op) {
  ValueState& out = state(op.out);
  const DType type = regime_.cache.value_or(out.dtype);
  const std::int64_t all = round_up(bytes_of(graph_.value(op.out).extent, type), kAllocationUnit);
  const auto id = static_cast<StorageId>(storages_.size());
  storages_.push_back({all, 1, kCacheSlot, Category::kv_cache, true});
  out.storage = id;
  emit(TapeEvent::Kind::alloc, Category::kv_cache, kCacheSlot, all);
  const auto let_go = [&](const Op& of) {
    if (sizes_.cached == 0) return;
    const std::int64_t each = checked_mul(graph_.value(of.out).extent.per, sizes_.batch);
    const std::int64_t old =
        round_up(checked_mul(checked_mul(each, sizes_.cached), size_of(type)), kAllocationUnit);
    emit(TapeEvent::Kind::free, Category::kv_cache, kCacheSlot, old);
  };
  if (op.window == 0) {
    let_go(op);
  } else if (op.part == CachePart::values) {
    for (const Op& other : graph_.ops())
      if (other.kind == OpKind::cache) let_go(other);
  }
}

/// Keys and values of all query heads, scaled queries and, for the product, scaled keys; then the
/// softmax, which looks for rows that are masked whole (aten/src/ATen/native/transformers/
/// attention.cpp, _safe_softmax) and fills them in place.
void TapeState::math_attention_inference(const Op& op) {
  const Extent queries = graph_.value(op.in[0]).extent;
  const Extent keys{queries.per, graph_.value(op.in[1]).extent.scale};
  const Extent scores{op.side.per, op.work.scale};
  const StorageId all_keys = temporary(keys, DType::f32);
  const StorageId all_values = temporary(keys, DType::f32);
  const StorageId scaled_queries = temporary(queries, DType::f32);
  const StorageId scaled_keys = temporary(keys, DType::f32);
  const StorageId logits = temporary(scores, DType::f32);
  unref(scaled_keys);
  const StorageId probabilities = temporary(scores, DType::f32);
  unref(temporary(scores, DType::b1));
  for (const StorageId id : {logits, probabilities, scaled_queries, all_values, all_keys})
    unref(id);
}

/// What an op makes beside its result goes at once: row statistics, the fused attention's sums of
/// rows (its kernel for masks makes none without autograd), a boolean mask made additive.
void TapeState::pass_side(const Op& op, bool attends, DType type) {
  const std::int64_t side = elements(op.side, sizes_);
  if (op.kind == OpKind::layer_norm) {
    const StorageId mean = allocate(checked_mul(side, 4), category_of(op.out));
    unref(allocate(checked_mul(side, 4), category_of(op.out)));
    unref(mean);
  } else if (attends && is_masked(op)) {
    unref(allocate(bytes_of(op.mask, type), category_of(op.out)));
  } else if (attends && op.scores_bias == kNone) {
    unref(allocate(checked_mul(side, 4), category_of(op.out)));
  }
}

bool TapeState::is_named_in_model(ValueId id) const {
  const auto& named = graph_.named_in_model();
  return std::find(named.begin(), named.end(), id) != named.end();
}

/// Values that the model's forward has a name for outlive the segment.
void TapeState::keep_names_of_model() {
  for (const ValueId value : graph_.named_in_model()) {
    const StorageId id = state(value).storage;
    if (id == kExternal) continue;
    Storage& s = storages_[static_cast<std::size_t>(id)];
    if (s.slot == result_.output_slot) {
      result_.names_output = true;
    } else {
      result_.named_in_model.push_back({TapeEvent::Kind::free, s.category, s.slot, s.bytes});
    }
  }
}

}  // namespace shardplan
