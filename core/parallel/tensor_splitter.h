// Values flow through a layer whole, divided along their width (heads, columns of the feed-forward
// part, the vocabulary), or, under sequence parallelism, divided along tokens. Parameters say where
// that changes (cuts.h); every other operation hands on what it is given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/cuts.h"
#include "parallel/parameter_cuts.h"
#include "parallel/rewrite.h"
#include "parallel/tensor_split.h"

namespace shardplan {

/// How a value lies on the ranks.
struct Layout {
  Part width;
  bool tokens = false;    ///< divided along tokens
  std::int64_t rows = 1;  ///< for each of a rank's own: put together by ranks that share experts
  bool partial = false;   ///< every rank's experts have made a part of the sum
};

/// Writes a rank's graphs, operation by operation, from those of the whole model.
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

  void run();

 private:
  [[noreturn]] void fail(std::string message) const;
  std::int64_t divided(std::int64_t n, Part part) const;
  Extent local(Extent extent, const Layout& layout) const;
  Extent of_tokens(Extent extent, const Layout& layout) const;
  const Layout& layout_of(ValueId old) const { return layouts_[static_cast<std::size_t>(old)]; }

  Graph split(const Segment& segment);
  void split_op(GraphRewrite& w, const Op& op);

  // Operations without a cut (tensor_uncut.cpp).
  Layout of_inputs(const Op& op) const;
  static bool side_has_width(OpKind kind);
  bool varies_with_tokens(Scale scale) const {
    return scale == Scale::tokens || scale == Scale::target_tokens;
  }

  bool takes_type_alone(const Op& op) const;
  void hand_on(GraphRewrite& w, const Op& op);
  ValueId enter_experts(GraphRewrite& w, ValueId rows, Layout& gathered);
  ValueId sum_rows(GraphRewrite& w, ValueId logits, Extent whole) const;
  void take_tokens(GraphRewrite& w, const Op& op, Op& now) const;
  Op with_all_tokens(GraphRewrite& w, const Op& op);
  void hand_on_parameter(GraphRewrite& w, const Op& op);

  // Exchanges around a cut (tensor_exchanges.cpp).
  ExchangeResult where() const;
  /// Megatron's projections of one input are one linear, and torchtitan's plan has the module that
  /// they are in gather its tokens (PrepareModuleInput).
  bool shares_input() const { return style_ == SplitStyle::megatron || by_tokens_; }

  ValueId enter(GraphRewrite& w, ValueId old, ExchangeResult result, Layout gathered = {});
  void leave(GraphRewrite& w, ValueId old, ExchangeResult result, bool all_tokens = false);
  void gather(GraphRewrite& w, ValueId old, Part part);

  // Along what a weight is cut (tensor_parts.cpp).
  Cut of_adapter(const Op& op);
  Cut resolved(const Op& op);
  bool is_head(ParameterId id) const;
  Part part_of(ParameterId weight) const;
  bool makes_heads(ParameterId weight) const;
  Part rows_of_vocabulary() const;
  bool lacks_heads(ParameterId id) const;

  // Operations with a weight that is cut (tensor_weights.cpp).
  void split_linear(GraphRewrite& w, const Op& op);
  void append_linear(GraphRewrite& w, const Op& op, Op now, const Layout& out);
  void add_bias(GraphRewrite& w, const Op& op, Extent extent);
  void split_rows(GraphRewrite& w, const Op& op, Cut cut);
  void split_experts(GraphRewrite& w, const Op& op);
  void split_embedding(GraphRewrite& w, const Op& op);

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

}  // namespace shardplan
