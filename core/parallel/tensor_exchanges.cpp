// What the ranks of a division exchange around a cut, forward and backward.
#include "parallel/tensor_splitter.h"

namespace shardplan {

ExchangeResult TensorSplit::where() const {
  return style_ == SplitStyle::transformers ? ExchangeResult::fresh : ExchangeResult::in_place;
}

/// What a column cut reads: whole, and its gradient is summed, once for each that shares none.
ValueId TensorSplit::enter(GraphRewrite& w, ValueId old, ExchangeResult result, Layout gathered) {
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
void TensorSplit::leave(GraphRewrite& w, ValueId old, ExchangeResult result, bool all_tokens) {
  const bool scatters = by_tokens_ && !all_tokens && !before_whole_;
  Communication with;
  with.forward = scatters ? Exchange::reduce_scatter : Exchange::all_reduce;
  with.backward = scatters ? Exchange::all_gather : Exchange::none;
  with.result = scatters ? ExchangeResult::fresh : result;
  Layout& s = layouts_[static_cast<std::size_t>(old)];
  s = {{}, scatters, 1, false};
  w.replace(old, w.exchange(w.at(old), with, local(w.from().value(old).extent, s)));
}

void TensorSplit::gather(GraphRewrite& w, ValueId old, Part part) {
  Communication with;
  with.forward = Exchange::all_gather;
  with.backward = Exchange::slice;
  with.result = ExchangeResult::staged;
  Layout& s = layouts_[static_cast<std::size_t>(old)];
  s.width = part;
  w.replace(old, w.exchange(w.at(old), with, local(w.from().value(old).extent, s)));
}

}  // namespace shardplan
