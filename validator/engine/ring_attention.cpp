#include "engine/ring_attention.h"

#include <string>
#include <vector>

namespace shardplan::validator {

RingAttention::RingAttention(Backend& device, Communicator& ranks, const Heads& heads, DType dtype)
    : device_(device),
      ranks_(ranks),
      heads_(heads),
      dtype_(dtype),
      ready_(device.new_event()),
      arrived_(device.new_event()) {}

void RingAttention::begin_step(Arena& arena) {
  const auto tensor = [&](const char* name, DType dtype, Shape shape) {
    return arena.allocate(std::string("ring.") + name, Category::communication_buffers, dtype,
                          shape);
  };
  const DType wide = statistic_type(dtype_);
  for (Tensor& block : blocks_) block = tensor("keys", dtype_, {heads_.rows(), block_width()});
  sum_ = tensor("sum", wide, {heads_.rows(), heads_.query_width()});
  part_lse_ = tensor("lse", wide, {heads_.batch, heads_.query_heads, heads_.sequence});
}

void RingAttention::begin_backward(Arena& arena) {
  for (Tensor& gradient : gradients_)
    gradient = arena.allocate("ring.key_gradients", Category::communication_buffers,
                              statistic_type(dtype_), {heads_.rows(), block_width()});
}

OtherKeys RingAttention::sight(int turn) const {
  const std::int64_t run = heads_.sequence / 2;
  const bool of_an_earlier_rank = turn <= ranks_.rank();
  if (of_an_earlier_rank) return {block(turn), all_rows(), {0, run}};
  return {block(turn), {run, run}, all_rows()};
}

void RingAttention::hand_over(std::initializer_list<Tensor> out,
                              std::initializer_list<Tensor> in) const {
  const int next = (ranks_.rank() + 1) % ranks_.size();
  const int previous = (ranks_.rank() + ranks_.size() - 1) % ranks_.size();
  std::vector<Parcel> going, coming;
  for (const Tensor& x : out) going.push_back({next, x});
  for (const Tensor& x : in) coming.push_back({previous, x});
  device_.record(ready_, Stream::compute);
  device_.wait(Stream::communication, ready_);
  ranks_.exchange(going, coming);
  device_.record(arrived_, Stream::communication);
}

void RingAttention::pack(const Tensor& qkv) const {
  device_.copy_columns({.to = block(0),
                        .from = qkv,
                        .from_column = heads_.query_width(),
                        .columns = block_width(),
                        .sequence = heads_.sequence,
                        .rows = all_rows()});
}

void RingAttention::forward(const AttentionForward& o) const {
  pack(o.qkv);
  hand_over({block(0)}, {block(1)});
  device_.attention_forward(o);
  device_.cast(sum_, o.out);
  for (int turn = 1; turn < ranks_.size(); ++turn) {
    await();
    if (turn + 1 < ranks_.size()) hand_over({block(turn)}, {block(turn + 1)});
    AttentionForward part = o;
    part.lse = part_lse_;
    part.others = sight(turn);
    device_.attention_forward(part);
    device_.merge_attention({.heads = heads_,
                             .sum = sum_,
                             .lse = o.lse,
                             .part = o.out,
                             .part_lse = part_lse_,
                             .queries = part.others.queries});
  }
  device_.cast(o.out, sum_);
}

void RingAttention::add_up(const Tensor& dqkv, int turn, const Span& queries,
                           const Span& keys) const {
  device_.copy_columns({.to = sum_,
                        .from = dqkv,
                        .columns = heads_.query_width(),
                        .sequence = heads_.sequence,
                        .rows = queries,
                        .accumulate = turn > 0});
  device_.copy_columns({.to = gradient(turn),
                        .from = dqkv,
                        .from_column = heads_.query_width(),
                        .columns = block_width(),
                        .sequence = heads_.sequence,
                        .rows = keys,
                        .accumulate = turn > 0});
}

/// The gradients of a block follow it by one hand-over, as they are known only once it was used.
void RingAttention::backward(const AttentionBackward& o) const {
  const int turns = ranks_.size();
  pack(o.qkv);
  hand_over({block(0)}, {block(1)});
  device_.attention_backward(o);
  add_up(o.dqkv, 0, all_rows(), all_rows());
  await();
  for (int turn = 1; turn < turns; ++turn) {
    if (turn + 1 < turns)
      hand_over({gradient(turn - 1), block(turn)}, {gradient(turn), block(turn + 1)});
    else
      hand_over({gradient(turn - 1)}, {gradient(turn)});
    AttentionBackward part = o;
    part.others = sight(turn);
    device_.attention_backward(part);
    await();
    add_up(o.dqkv, turn, part.others.queries, part.others.keys);
  }
  hand_over({gradient(turns - 1)}, {gradient(turns)});  // to where the block came from
  await();
  device_.copy_columns({.to = o.dqkv,
                        .from = sum_,
                        .columns = heads_.query_width(),
                        .sequence = heads_.sequence,
                        .rows = all_rows()});
  device_.copy_columns({.to = o.dqkv,
                        .to_column = heads_.query_width(),
                        .from = gradient(turns),
                        .columns = block_width(),
                        .sequence = heads_.sequence,
                        .rows = all_rows()});
}

}  // namespace shardplan::validator
