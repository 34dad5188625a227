// Attention of ranks that have parts of the same sequences (Ring Attention, arXiv 2310.01889). Each
// keeps its queries; keys and values travel from rank to rank, the next ones while those that have
// come are used, and their gradients with them on the way back.
//
// A rank has two runs of each sequence, one from the front and one from the back
// (model/context_share.h). Of what an earlier rank has, all its queries see the first run and none
// the second; of what a later rank has, its second run sees all and its first nothing. So every
// rank computes as much with every block.
//
// Results over several blocks are put together by their log-sum-exps, in fp32; gradients of
// queries, and those of keys and values on their way, are added up in fp32.
#pragma once

#include <array>
#include <initializer_list>

#include "engine/self_attention.h"

namespace shardplan::validator {

class RingAttention final : public SelfAttention {
 public:
  RingAttention(Backend& device, Communicator& ranks, const Heads& heads, DType dtype);

  void begin_step(Arena& arena) override;
  void begin_backward(Arena& arena) override;
  void forward(const AttentionForward& o) const override;
  void backward(const AttentionBackward& o) const override;

 private:
  /// Elements of a row of keys and values.
  std::int64_t block_width() const { return 2 * heads_.key_value_heads * heads_.head_dim; }
  Span all_rows() const { return {0, heads_.sequence}; }
  /// Of two that take turns: what has come after `turn` hand-overs, and what comes with the next.
  const Tensor& block(int turn) const { return blocks_[static_cast<std::size_t>(turn % 2)]; }
  const Tensor& gradient(int turn) const { return gradients_[static_cast<std::size_t>(turn % 2)]; }
  /// After `turn` hand-overs a rank has the keys of the rank so many places before it.
  OtherKeys sight(int turn) const;
  /// Sends the next rank `out` and receives `in` from the one before, beside what is computed from
  /// now on, until await().
  void hand_over(std::initializer_list<Tensor> out, std::initializer_list<Tensor> in) const;
  void await() const { device_.wait(Stream::compute, arrived_); }
  /// Puts this rank's keys and values where they travel from.
  void pack(const Tensor& qkv) const;
  /// Adds what `dqkv` has of one block to the sums; of the first, puts it there.
  void add_up(const Tensor& dqkv, int turn, const Span& queries, const Span& keys) const;

  Backend& device_;
  Communicator& ranks_;
  Heads heads_;
  DType dtype_;
  Event ready_, arrived_;
  Tensor sum_;                       ///< [rows, query_width] fp32: of results, or of dq
  Tensor part_lse_;                  ///< [batch, query_heads, sequence] fp32
  std::array<Tensor, 2> blocks_;     ///< [rows, block width]: keys and values
  std::array<Tensor, 2> gradients_;  ///< [rows, block width] fp32: of keys and values
};

}  // namespace shardplan::validator
