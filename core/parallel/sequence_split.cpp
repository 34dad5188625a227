#include "parallel/sequence_split.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "frameworks/registry.h"
#include "parallel/rewrite.h"

namespace shardplan {
namespace {

class SequenceSplit {
 public:
  SequenceSplit(const ModelFacts& facts, const Plan& plan)
      : facts_(facts),
        heads_over_(plan.parallel.sequence),
        round_(plan.parallel.context),
        keys_(traits_of(plan).keys(plan)) {}

  Graph split(const Graph& graph) const {
    GraphRewrite w(graph);
    for (const Input& in : graph.inputs()) w.input(in, graph.value(in.value).extent);
    for (const Op& op : graph.ops()) {
      if (op.kind == OpKind::sdpa)
        attend(w, op);
      else if (op.kind == OpKind::matmul && op.work.scale >= Scale::scores)
        throw InputError({.key = "attention",
                          .message = "eager attention cannot be divided along sequences",
                          .expected = "sdpa"});
      else
        w.append(w.with_inputs(op), graph.value(op.out).extent);
    }
    return w.finish();
  }

 private:
  /// A row of scores is over the keys of the whole sequence.
  Extent whole_rows(Extent scores) const {
    scores.per = checked_mul(scores.per, heads_over_ * round_);
    return scores;
  }

  void attend(GraphRewrite& w, const Op& op) const {
    Op now = w.with_inputs(op);
    now.work = whole_rows(op.work);
    if (op.mask.per > 0) now.mask = whole_rows(op.mask);
    if (round_ > 1) {
      now.exchange.group = Group::context;
      now.exchange.forward = now.exchange.backward = Exchange::ring;
      if (keys_ != KeyExchange::ring) read_in_blocks(now);
    }
    if (heads_over_ > 1)
      for (std::size_t k = 0; k < now.in.size(); ++k) now.in[k] = turn(w, now.in[k], repeats(k));
    w.append(now, w.from().value(op.out).extent);
    if (heads_over_ > 1) w.replace(op.out, turn(w, w.at(op.out), 1));
  }

  /// Fewer key-value heads than ranks: each goes to as many ranks as share it.
  std::int64_t repeats(std::size_t input) const {
    const std::int64_t heads = facts_.key_value_heads;
    return input == 0 || heads == 0 || heads >= heads_over_ ? 1 : heads_over_ / heads;
  }

  /// From a rank's tokens of all heads to all tokens of its heads, or back.
  static ValueId turn(GraphRewrite& w, ValueId x, std::int64_t times) {
    Extent extent = w.graph().value(x).extent;
    extent.per = checked_mul(extent.per, times);
    Communication with;
    with.group = Group::sequence;
    with.forward = with.backward = Exchange::all_to_all;
    with.result = ExchangeResult::staged;
    return w.exchange(x, with, extent);
  }

  void read_in_blocks(Op& op) const {
    op.key_blocks = round_;
    if (keys_ == KeyExchange::blocks_all)
      op.exchange.forward = op.exchange.backward = Exchange::all_gather;
  }

  const ModelFacts& facts_;
  std::int64_t heads_over_, round_;
  KeyExchange keys_;
};

}  // namespace

void split_sequences(Model& model, const Plan& plan) {
  const SequenceSplit split(model.facts, plan);
  for (Segment& segment : model.segments) segment.graph = split.split(segment.graph);
}

}  // namespace shardplan
