// Writes a graph again, operation by operation, with others between.
#pragma once

#include <vector>

#include "model/graph.h"

namespace shardplan {

/// A graph on its way into another: values of the old one have counterparts in the new one.
class GraphRewrite {
 public:
  explicit GraphRewrite(const Graph& from);

  const Graph& from() const { return from_; }
  Graph& graph() { return to_; }

  /// The counterpart of an old value.
  ValueId at(ValueId old) const {
    return old == kNone ? kNone : now_[static_cast<std::size_t>(old)];
  }
  /// From here on `old` means `now`.
  void replace(ValueId old, ValueId now) { now_[static_cast<std::size_t>(old)] = now; }

  /// An input of the old graph, with the extent it has on this rank.
  void input(const Input& in, Extent extent);
  /// The operation that makes `op.out`; its inputs are values of the new graph.
  void append(const Op& op, Extent out);
  /// The same of a function, which becomes `function`.
  void append(const Op& op, Function function, Extent out);
  /// `op` with the counterparts of its inputs.
  Op with_inputs(const Op& op) const;
  /// An exchange of `x`, a value of the new graph; returns its result.
  ValueId exchange(ValueId x, const Communication& with, Extent out);

  /// Holds and the output follow their values.
  Graph finish();

 private:
  const Graph& from_;
  Graph to_;
  std::vector<ValueId> now_;
  bool in_logits_ = false;
};

}  // namespace shardplan
