// Along what each weight is cut, and how much of it a rank has.
#include "parallel/tensor_splitter.h"

#include <algorithm>

#include <fmt/format.h>

namespace shardplan {
namespace {

/// make_vocab_size_divisible_by of Megatron: rows of a table for each rank are a multiple of it.
constexpr std::int64_t kVocabularyMultiple = 128;

}  // namespace

/// Of adapters beside Megatron's linears: A is whole beside a column cut, whose rows B cuts;
/// where the linear reads divided inputs A is cut along them, and B whole (mcore-bridge 1.6,
/// tuners/lora.py, update_layer).
Cut TensorSplit::of_adapter(const Op& op) {
  if (cuts_.of(op.weight) == Cut::whole) return Cut::whole;
  const Cut before = narrow_[static_cast<std::size_t>(op.in[0])];
  if (before != Cut::flow) return before;
  const bool row = !layout_of(op.in[0]).width.whole();
  narrow_[static_cast<std::size_t>(op.out)] = row ? Cut::whole : Cut::column;
  return row ? Cut::row : Cut::whole;
}

Cut TensorSplit::resolved(const Op& op) {
  if (op.kind == OpKind::linear && op.in[0] != kNone && parameter(op.weight).adapter)
    return of_adapter(op);
  const Cut cut = cuts_.of(op.weight);
  const bool input_divided = op.in[0] != kNone && !layout_of(op.in[0]).width.whole();
  if (cut == Cut::flow) return input_divided ? Cut::row : Cut::column;
  if (cut == Cut::vocabulary)  // a tied head
    return shares_input() ? Cut::column : Cut::column_gathered;
  const bool column = cut == Cut::column || cut == Cut::column_gathered;
  if (column && input_divided)
    fail(fmt::format("{} reads a divided input", parameter(op.weight).name));
  return cut;
}

bool TensorSplit::is_head(ParameterId id) const {
  const Parameter& p = parameter(id);
  return p.shape.front() == model_.facts.vocabulary && style_ == SplitStyle::megatron;
}

Part TensorSplit::part_of(ParameterId weight) const {
  if (cuts_.of(weight) == Cut::vocabulary || is_head(weight)) return rows_of_vocabulary();
  if (style_ == SplitStyle::megatron || !makes_heads(weight)) return {1, ranks_};
  if (repeats_heads_ && ranks_ % key_value_heads_ == 0 && !is_packed_attention(name_of(weight)))
    return {1, is_key_or_value(name_of(weight)) ? std::min(key_value_heads_, ranks_) : ranks_};
  // DeepSpeed's first ranks have a key-value head more where they do not come out even.
  if (style_ == SplitStyle::autotp) return {ceil_div(key_value_heads_, ranks_), key_value_heads_};
  if (key_value_heads_ % ranks_ != 0)
    fail(fmt::format("transformers cannot divide {} key-value heads over {} ranks",
                     key_value_heads_, ranks_));
  return {1, ranks_};
}

bool TensorSplit::makes_heads(ParameterId weight) const {
  return key_value_heads_ > 0 && name_of(weight).find("attn") != std::string_view::npos;
}

Part TensorSplit::rows_of_vocabulary() const {
  const std::int64_t rows = model_.facts.vocabulary;
  if (style_ != SplitStyle::megatron || rows == 0) return {1, ranks_};
  return {ceil_div(rows, kVocabularyMultiple * ranks_) * kVocabularyMultiple, rows};
}

/// Megatron gives every rank a key-value head where there are fewer than ranks: the projections
/// are put together and each takes its own.
bool TensorSplit::lacks_heads(ParameterId id) const {
  if (style_ != SplitStyle::megatron || key_value_heads_ >= ranks_ || key_value_heads_ == 0)
    return false;
  return is_key_or_value(name_of(id));
}

}  // namespace shardplan
