// Values flow through a layer whole, divided along their width (heads, columns of the feed-forward
// part, the vocabulary), or, under sequence parallelism, divided along tokens. Parameters say where
// that changes (cuts.h); every other operation hands on what it is given.
#include "parallel/tensor_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/diagnostic.h"
#include "parallel/cuts.h"
#include "parallel/expert_rows.h"
#include "parallel/parameter_cuts.h"
#include "parallel/rewrite.h"
#include "parallel/whole_graph.h"

namespace shardplan {
namespace {

/// make_vocab_size_divisible_by of Megatron: rows of a table for each rank are a multiple of it.
constexpr std::int64_t kVocabularyMultiple = 128;

/// How a value lies on the ranks.
struct Layout {
  Part width;
  bool tokens = false;    ///< divided along tokens
  std::int64_t rows = 1;  ///< for each of a rank's own: put together by ranks that share experts
  bool partial = false;   ///< every rank's experts have made a part of the sum
};

class TensorSplit {
 public:
  TensorSplit(Model& model, const Plan& plan, SplitStyle style)
      : model_(model),
        style_(style),
        ranks_(plan.parallel.tensor),
        expert_ranks_(style == SplitStyle::megatron ? plan.parallel.expert_tensor : ranks_),
        key_value_heads_(model.facts.key_value_heads),
        repeats_heads_(plan.workload.generation.engine.has_value()),
        by_tokens_(plan.parallel.sequence_parallel),
        cuts_(model, plan, style),
        parameter_cuts_(model.parameters.size()) {}

  void run() {
    for (const Parameter& p : model_.parameters)
      if (p.adapter && style_ != SplitStyle::megatron)
        fail("LoRA's matrices have no published cut");
    std::vector<Graph> graphs;  // written from the whole model's parameters, one after the other
    for (std::size_t i = 0; i < model_.segments.size(); ++i) {
      const Segment& segment = model_.segments[i];
      const bool last = i + 1 == model_.segments.size();
      before_whole_ = !last && model_.segments[i + 1].whole;
      const bool takes = by_tokens_ && !before_whole_;
      graphs.push_back(segment.whole || segment.of_images
                           ? whole_graph(segment.graph, takes ? ranks_ : 1)
                           : split(segment));
    }
    for (std::size_t i = 0; i < graphs.size(); ++i) model_.segments[i].graph = std::move(graphs[i]);
    parameter_cuts_.apply(model_, [&](std::int64_t n, Part part) { return divided(n, part); });
  }

 private:
  [[noreturn]] void fail(std::string message) const {
    throw InputError({.key = "parallel.tensor", .message = std::move(message), .expected = "1"});
  }

  std::int64_t divided(std::int64_t n, Part part) const {
    const auto share = share_of(n, part);
    if (!share) fail(fmt::format("{} ranks cannot divide a width of {} evenly", ranks_, n));
    return *share;
  }

  Extent local(Extent extent, const Layout& layout) const {
    extent.per = divided(extent.per, layout.width);
    return of_tokens(extent, layout);
  }

  /// A rank's tokens, and those that other ranks have given it.
  Extent of_tokens(Extent extent, const Layout& layout) const {
    const std::int64_t shards = layout.tokens ? ranks_ : 1;
    const std::int64_t shared = std::gcd(shards, layout.rows);
    extent.per = checked_mul(extent.per, layout.rows / shared);
    // The rows of images may all be among one rank's tokens.
    if (shards > shared && extent.scale != Scale::images) extent.shards = shards / shared;
    return extent;
  }

  const Layout& layout_of(ValueId old) const { return layouts_[static_cast<std::size_t>(old)]; }

  Graph split(const Segment& segment) {
    const Graph& graph = segment.graph;
    GraphRewrite rewrite(graph);
    layouts_.assign(graph.values().size(), {});
    narrow_.assign(graph.values().size(), Cut::flow);
    entered_.assign(graph.values().size(), kNone);
    together_.assign(graph.values().size(), kNone);
    by_widened_.assign(graph.values().size(), false);
    expert_rows_ = rows_for_experts(graph, cuts_);
    for (const Input& in : graph.inputs()) {
      Layout& s = layouts_[static_cast<std::size_t>(in.value)];
      s.tokens = by_tokens_ && in.kind == InputKind::chained;
      rewrite.input(in, local(graph.value(in.value).extent, s));
    }
    for (const Op& op : graph.ops()) split_op(rewrite, op);
    return rewrite.finish();
  }

  void split_op(GraphRewrite& w, const Op& op) {
    switch (op.kind) {
      case OpKind::linear:
      case OpKind::fused_linear_loss:
        split_linear(w, op);
        return;
      case OpKind::grouped_linear:
        split_experts(w, op);
        return;
      case OpKind::embedding:
        split_embedding(w, op);
        return;
      case OpKind::parameter:
        hand_on_parameter(w, op);
        return;
      default:
        hand_on(w, op);
    }
  }

  // Operations without a cut.

  /// What an operation over these inputs makes: divided as the first divided one is.
  Layout of_inputs(const Op& op) const {
    Layout result;
    for (const ValueId in : op.in) {
      if (in == kNone) continue;
      const Layout& s = layout_of(in);
      if (result.width.whole()) result.width = s.width;
      result.tokens = result.tokens || s.tokens;
      result.rows = std::max(result.rows, s.rows);
      result.partial = result.partial || s.partial;
    }
    return result;
  }

  /// Of other operations the side results are indices, which all ranks have alike.
  static bool side_has_width(OpKind kind) {
    return kind == OpKind::sdpa || kind == OpKind::layer_norm || kind == OpKind::rms_norm ||
           kind == OpKind::vocabulary_loss;
  }

  bool varies_with_tokens(Scale scale) const {
    return scale == Scale::tokens || scale == Scale::target_tokens;
  }

  /// What a linear with a widened weight has made, in the type of what it was given: divided as the
  /// result is, however its input lies.
  bool takes_type_alone(const Op& op) const {
    return op.kind == OpKind::to_like && by_widened_[static_cast<std::size_t>(op.in[0])];
  }

  void hand_on(GraphRewrite& w, const Op& op) {
    Layout s = takes_type_alone(op) ? layout_of(op.in[0]) : of_inputs(op);
    const Extent whole = w.from().value(op.out).extent;
    Op now = op.all_tokens ? with_all_tokens(w, op) : w.with_inputs(op);
    s.tokens = s.tokens && !op.all_tokens;
    if (s.tokens && !takes_type_alone(op)) take_tokens(w, op, now);
    if (op.kind == OpKind::gather_rows && expert_rows_[static_cast<std::size_t>(op.out)])
      now.in[0] = enter_experts(w, op.in[0], s);
    if (!s.width.whole()) {
      now.work.per = divided(now.work.per, s.width);
      if (side_has_width(op.kind)) now.side.per = divided(now.side.per, s.width);
      // Every rank learns the largest logit, the label's and the sum of a token.
      if (op.kind == OpKind::log_softmax || op.kind == OpKind::vocabulary_loss)
        now.in[0] = sum_rows(w, now.in[0], w.from().value(op.in[0]).extent);
    }
    now.work = of_tokens(now.work, s);
    now.side = of_tokens(now.side, s);
    const bool scalar = whole.scale == Scale::one && whole.per == 1;  // a loss is of all ranks
    if (scalar) s = {};
    if (op.kind == OpKind::function)
      w.append(
          now,
          over_columns(w.from().function(op), [&](std::int64_t n) { return divided(n, s.width); }),
          local(whole, s));
    else
      w.append(now, local(whole, s));
    layouts_[static_cast<std::size_t>(op.out)] = s;
    // A layer of experts ends with its result in the type of its input; Megatron's with its rows in
    // the order in which they came.
    const OpKind end = style_ == SplitStyle::megatron ? OpKind::gather_rows : OpKind::to_like;
    if (s.partial && op.kind == end) leave(w, op.out, ExchangeResult::in_place);
  }

  /// Megatron's ranks have tokens of their own, which they put together for the experts they share.
  ValueId enter_experts(GraphRewrite& w, ValueId rows, Layout& gathered) {
    if (style_ == SplitStyle::megatron) gathered.rows = expert_ranks_;
    return enter(w, rows, ExchangeResult::in_place, gathered);
  }

  ValueId sum_rows(GraphRewrite& w, ValueId logits, Extent whole) const {
    Communication with;
    with.forward = Exchange::all_reduce;
    with.result = ExchangeResult::in_place;
    with.payload = {3, whole.scale};
    return w.exchange(logits, with, w.graph().value(logits).extent);
  }

  /// Beside values divided along tokens a rank needs its tokens of the others.
  void take_tokens(GraphRewrite& w, const Op& op, Op& now) const {
    for (std::size_t k = 0; k < op.in.size(); ++k) {
      if (op.in[k] == kNone || layout_of(op.in[k]).tokens) continue;
      const Extent whole = w.from().value(op.in[k]).extent;
      if (varies_with_tokens(whole.scale)) now.in[k] = own_tokens(w, now.in[k], whole, ranks_);
    }
  }

  /// An op over all tokens: what it reads is put together, once for all that read it. Every rank
  /// makes the whole gradient of it, and keeps its own tokens'
  /// (gather_from_sequence_parallel_region without tensor_parallel_output_grad).
  Op with_all_tokens(GraphRewrite& w, const Op& op) {
    Op now = w.with_inputs(op);
    for (std::size_t k = 0; k < op.in.size(); ++k) {
      if (op.in[k] == kNone || !layout_of(op.in[k]).tokens) continue;
      Communication with;
      with.forward = Exchange::all_gather;
      with.backward = Exchange::slice;
      ValueId& all = together_[static_cast<std::size_t>(op.in[k])];
      if (all == kNone) all = w.exchange(w.at(op.in[k]), with, w.from().value(op.in[k]).extent);
      now.in[k] = all;
    }
    return now;
  }

  void hand_on_parameter(GraphRewrite& w, const Op& op) {
    Op now = w.with_inputs(op);
    Extent extent = w.from().value(op.out).extent;
    if (style_ == SplitStyle::megatron && cuts_.of(op.weight) == Cut::column) {  // a row for each
      const Part part{1, ranks_};
      extent.per = divided(extent.per, part);
      parameter_cuts_.cut_rows(op.weight, part);
      layouts_[static_cast<std::size_t>(op.out)].width = part;
    }
    w.append(now, extent);
    if (cuts_.of(op.weight) != Cut::summed) return;
    Communication with;
    with.backward = Exchange::all_reduce;
    with.result = ExchangeResult::in_place;
    w.replace(op.out, w.exchange(w.at(op.out), with, extent));
  }

  // Cuts.

  ExchangeResult where() const {
    return style_ == SplitStyle::transformers ? ExchangeResult::fresh : ExchangeResult::in_place;
  }

  /// Megatron's projections of one input are one linear, and torchtitan's plan has the module that
  /// they are in gather its tokens (PrepareModuleInput).
  bool shares_input() const { return style_ == SplitStyle::megatron || by_tokens_; }

  /// What a column cut reads: whole, and its gradient is summed, once for each that shares none.
  ValueId enter(GraphRewrite& w, ValueId old, ExchangeResult result, Layout gathered = {}) {
    ValueId& entered = entered_[static_cast<std::size_t>(old)];
    if (shares_input() && entered != kNone) return entered;
    const bool tokens = layout_of(old).tokens;
    Communication with;
    with.result = tokens ? ExchangeResult::fresh : result;
    with.forward = tokens ? Exchange::all_gather : Exchange::none;
    with.backward = tokens ? Exchange::reduce_scatter : Exchange::all_reduce;
    entered = w.exchange(w.at(old), with, local(w.from().value(old).extent, gathered));
    return entered;
  }

  /// Partial sums of all ranks become one value.
  void leave(GraphRewrite& w, ValueId old, ExchangeResult result, bool all_tokens = false) {
    const bool scatters = by_tokens_ && !all_tokens && !before_whole_;
    Communication with;
    with.forward = scatters ? Exchange::reduce_scatter : Exchange::all_reduce;
    with.backward = scatters ? Exchange::all_gather : Exchange::none;
    with.result = scatters ? ExchangeResult::fresh : result;
    Layout& s = layouts_[static_cast<std::size_t>(old)];
    s = {{}, scatters, 1, false};
    w.replace(old, w.exchange(w.at(old), with, local(w.from().value(old).extent, s)));
  }

  void gather(GraphRewrite& w, ValueId old, Part part) {
    Communication with;
    with.forward = Exchange::all_gather;
    with.backward = Exchange::slice;
    with.result = ExchangeResult::staged;
    Layout& s = layouts_[static_cast<std::size_t>(old)];
    s.width = part;
    w.replace(old, w.exchange(w.at(old), with, local(w.from().value(old).extent, s)));
  }

  /// Of adapters beside Megatron's linears: A is whole beside a column cut, whose rows B cuts;
  /// where the linear reads divided inputs A is cut along them, and B whole (mcore-bridge 1.6,
  /// tuners/lora.py, update_layer).
  Cut of_adapter(const Op& op) {
    if (cuts_.of(op.weight) == Cut::whole) return Cut::whole;
    const Cut before = narrow_[static_cast<std::size_t>(op.in[0])];
    if (before != Cut::flow) return before;
    const bool row = !layout_of(op.in[0]).width.whole();
    narrow_[static_cast<std::size_t>(op.out)] = row ? Cut::whole : Cut::column;
    return row ? Cut::row : Cut::whole;
  }

  Cut resolved(const Op& op) {
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

  void split_linear(GraphRewrite& w, const Op& op) {
    const Cut cut = resolved(op);
    by_widened_[static_cast<std::size_t>(op.out)] =
        op.weight != kNone && parameter(op.weight).widened();
    if (cut == Cut::whole) {
      hand_on(w, op);
      return;
    }
    if (cut == Cut::row || cut == Cut::row_sliced) {
      split_rows(w, op, cut);
      return;
    }
    if (op.kind == OpKind::fused_linear_loss && cut == Cut::column_gathered)
      fail("the fused linear loss takes no divided head");
    const Part part = part_of(op.weight);
    Op now = w.with_inputs(op);
    if (op.in[0] != kNone) {
      now.in[0] = enter(w, op.in[0], where());
      if (layout_of(op.in[0]).tokens && style_ == SplitStyle::megatron) now.kept = w.at(op.in[0]);
    }
    now.work.per = divided(now.work.per, part);
    parameter_cuts_.cut_weight(model_, w.from(), op, false, part);
    parameter_cuts_.cut_rows(op.bias, part);
    append_linear(w, op, now, op.kind == OpKind::fused_linear_loss ? Layout{} : Layout{part});
    if (cut == Cut::column_gathered) gather(w, op.out, {});
    if (lacks_heads(op.weight)) gather(w, op.out, {1, key_value_heads_});
  }

  /// DeepSpeed's layers add their bias to the product in an operation of its own.
  void append_linear(GraphRewrite& w, const Op& op, Op now, const Layout& out) {
    const Extent extent = local(w.from().value(op.out).extent, out);
    layouts_[static_cast<std::size_t>(op.out)] = out;
    const bool adds = style_ == SplitStyle::autotp && op.bias != kNone;
    if (adds) now.bias = kNone;
    w.append(now, extent);
    if (!adds) return;
    if (!out.width.whole() || cuts_.of(op.weight) == Cut::column_gathered)
      add_bias(w, op, extent);
    else
      late_bias_ = true;
  }

  void add_bias(GraphRewrite& w, const Op& op, Extent extent) {
    Op bias{OpKind::parameter};
    bias.module = op.module;
    bias.weight = op.bias;
    const std::int64_t width =
        parameter(op.bias).numel * extent.per / w.from().value(op.out).extent.per;
    const ValueId row = w.graph().op(bias, {width, Scale::one});
    w.replace(op.out, w.graph().op({OpKind::add, {w.at(op.out), row, kNone}}, extent));
  }

  bool is_head(ParameterId id) const {
    const Parameter& p = parameter(id);
    return p.shape.front() == model_.facts.vocabulary && style_ == SplitStyle::megatron;
  }

  Part part_of(ParameterId weight) const {
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

  bool makes_heads(ParameterId weight) const {
    return key_value_heads_ > 0 && name_of(weight).find("attn") != std::string_view::npos;
  }

  Part rows_of_vocabulary() const {
    const std::int64_t rows = model_.facts.vocabulary;
    if (style_ != SplitStyle::megatron || rows == 0) return {1, ranks_};
    return {ceil_div(rows, kVocabularyMultiple * ranks_) * kVocabularyMultiple, rows};
  }

  /// Megatron gives every rank a key-value head where there are fewer than ranks: the projections
  /// are put together and each takes its own.
  bool lacks_heads(ParameterId id) const {
    if (style_ != SplitStyle::megatron || key_value_heads_ >= ranks_ || key_value_heads_ == 0)
      return false;
    return is_key_or_value(name_of(id));
  }

  void split_rows(GraphRewrite& w, const Op& op, Cut cut) {
    Op now = w.with_inputs(op);
    Part part = layout_of(op.in[0]).width;
    if (cut == Cut::row_sliced || part.whole()) {
      part = {1, ranks_};
      Communication with;
      with.forward = Exchange::slice;
      with.backward = Exchange::all_gather;
      const Extent whole = w.from().value(op.in[0]).extent;
      now.in[0] = w.exchange(now.in[0], with, {divided(whole.per, part), whole.scale});
    }
    now.work.per = divided(now.work.per, part);
    parameter_cuts_.cut_weight(model_, w.from(), op, true, part);
    append_linear(w, op, now, {});
    leave(w, op.out, where(), op.all_tokens);
    if (std::exchange(late_bias_, false))
      add_bias(w, op, local(w.from().value(op.out).extent, layout_of(op.out)));
  }

  /// Experts: all ranks route the same tokens. A rank has a part of every expert, or some experts
  /// whole; what it lacks is summed in when the layer's tokens are put together.
  void split_experts(GraphRewrite& w, const Op& op) {
    const Cut cut = resolved(op);
    if (cut == Cut::whole) {
      hand_on(w, op);
      return;
    }
    const Part part{1, expert_ranks_};
    Op now = w.with_inputs(op);
    now.work.per = divided(now.work.per, part);
    now.work = of_tokens(now.work, layout_of(op.in[0]));
    Layout out = layout_of(op.in[0]);
    if (cut == Cut::column) out.width = part;
    if (cut == Cut::row) out = {{}, out.tokens, out.rows, true};
    if (cut == Cut::number) out.partial = true;
    const std::int32_t dim = cut == Cut::number ? 0 : cut == Cut::column ? 1 : 2;
    parameter_cuts_.cut(op.weight, static_cast<std::size_t>(dim), part);
    layouts_[static_cast<std::size_t>(op.out)] = out;
    w.append(now, local(w.from().value(op.out).extent, out));
  }

  void split_embedding(GraphRewrite& w, const Op& op) {
    w.append(w.with_inputs(op), w.from().value(op.out).extent);
    if (cuts_.of(op.weight) != Cut::vocabulary) return;
    parameter_cuts_.cut_rows(op.weight, rows_of_vocabulary());
    leave(w, op.out, where());
  }

  // Parameters.

  std::string_view name_of(ParameterId id) const { return parameter(id).name; }

  const Parameter& parameter(ParameterId id) const {
    return model_.parameters[static_cast<std::size_t>(id)];
  }

  Model& model_;
  SplitStyle style_;
  std::int64_t ranks_;
  std::int64_t expert_ranks_;  ///< that share an expert
  std::int64_t key_value_heads_;
  bool repeats_heads_;  ///< ranks beyond the heads of keys share them: a serving engine's
  bool by_tokens_;
  Cuts cuts_;
  ParameterCuts parameter_cuts_;
  // Of the graph that is being written, by value:
  std::vector<Layout> layouts_;
  std::vector<ValueId> entered_;   ///< what a column cut reads of it
  std::vector<ValueId> together_;  ///< all tokens of it
  std::vector<bool> expert_rows_;  ///< given to divided experts
  std::vector<bool> by_widened_;   ///< made with a weight that is widened for it
  std::vector<Cut> narrow_;        ///< how what A made is cut next; flow: no adapter made it
  bool late_bias_ = false;         ///< a bias waits for the sum over the ranks
  bool before_whole_ = false;      ///< the next segment is whole on every rank
};

}  // namespace

void split_tensors(Model& model, const Plan& plan, SplitStyle style) {
  TensorSplit(model, plan, style).run();
}

}  // namespace shardplan
