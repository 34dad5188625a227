#include "parallel/sequence_split.h"

#include <fmt/format.h>

#include <algorithm>

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

  /// Of what comes before the layers where images are placed among tokens: each rank does all of it
  /// for the whole sequence and keeps its part (NeMo Automodel 0.5,
  /// components/distributed/context_parallel: models that shard their own embeddings). `keeps`: it
  /// is the last of it.
  Graph whole(const Graph& graph, bool keeps) const {
    GraphRewrite w(graph);
    const auto all = [&](Extent extent) {
      if (extent.scale == Scale::tokens) extent.per = checked_mul(extent.per, round_);
      return extent;
    };
    for (const Input& in : graph.inputs()) w.input(in, all(graph.value(in.value).extent));
    for (const Op& op : graph.ops()) {
      Op now = w.with_inputs(op);
      now.work = all(op.work);
      now.side = all(op.side);
      w.append(now, all(graph.value(op.out).extent));
    }
    const ValueId out = graph.output();
    if (keeps)
      w.replace(out,
                w.graph().op({OpKind::copy, {w.at(out), kNone, kNone}}, graph.value(out).extent));
    return w.finish();
  }

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
    if (op.mask.per > 0) now.mask = facts_.own_ring && round_ > 1 ? Extent{} : whole_rows(op.mask);
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

/// Whether layers read what this segment leaves.
bool layers_read(const Model& model, std::ptrdiff_t maker) {
  return std::any_of(model.segments.begin(), model.segments.end(), [&](const Segment& segment) {
    const std::vector<Input>& inputs = segment.graph.inputs();
    return segment.is_block() && std::any_of(inputs.begin(), inputs.end(), [&](const Input& in) {
             if (in.kind != InputKind::shared) return false;
             const Shared& shared = model.shared[static_cast<std::size_t>(in.shared)];
             return shared.is_output && shared.maker == maker;
           });
  });
}

}  // namespace

void split_sequences(Model& model, const Plan& plan) {
  const SequenceSplit split(model.facts, plan);
  const auto of_images = [](const Segment& s) { return s.of_images; };
  const auto first = std::find_if(model.segments.begin(), model.segments.end(),
                                  [](const Segment& s) { return s.is_block(); });
  const bool places = std::any_of(model.segments.begin(), first, of_images);
  for (auto segment = model.segments.begin(); segment != model.segments.end(); ++segment) {
    if (segment->of_images) continue;
    const bool before = places && segment < first;
    const bool keeps = segment + 1 == first || layers_read(model, segment - model.segments.begin());
    segment->graph = before ? split.whole(segment->graph, keeps) : split.split(segment->graph);
  }
}

}  // namespace shardplan
