// The gradients of a backward pass: of values, added up as the engine's input buffers do, and of
// parameters, which are handed to the framework.
#pragma once

#include <vector>

#include "program/tape/graph_view.h"
#include "program/tape/storages.h"

namespace shardplan::tape {

class Gradients {
 public:
  Gradients(const GraphView& view, Storages& storages, TapeWriter& writer)
      : view_(view), storages_(storages), writer_(writer) {}
  /// The backward pass begins: no value has a gradient.
  void begin() {
    gradients_.resize(view_.graph().values().size());
    given_.clear();
    taken_.clear();
  }

  bool has(ValueId value) const { return of(value).present; }
  /// kExternal where it has none.
  StorageId storage(ValueId value) const { return of(value).storage; }
  /// `gradient` is the output's, as the next segment left it.
  void set(ValueId value, StorageId gradient) { at(value) = {gradient, true, false}; }
  /// Hands a gradient (one reference of it) to a value. What has one already is added up when the
  /// node is done and has let go what it read: settle().
  void give(ValueId value, StorageId gradient) { give(value, gradient, false); }
  /// The same of a view, whose base holds it: what is added to it makes a new tensor.
  void give_view(ValueId value, StorageId gradient) { give(value, gradient, true); }
  /// Adds up what the node gave. The engine adds in place when nobody else holds the first one, and
  /// makes a new tensor otherwise (InputBuffer::accumulate).
  void settle();
  /// The node that made `value` has run: its gradient goes.
  void drop(ValueId value);

  /// A new tensor of the size of `value`.
  StorageId allocate_like(ValueId value, DType type);
  /// The gradient of a parameter appears, if it trains. Where operations share it, the later ones'
  /// are added to the first.
  void give_parameter(ParameterId id);
  /// The same of one that is added to the first in a new tensor.
  void give_to_sum(ParameterId id);
  /// The node that gave gradients to parameters is done and has let go what it read. AccumulateGrad
  /// runs before every other node (its sequence number is the highest,
  /// torch/csrc/autograd/engine.cpp).
  void hand_over();

 private:
  struct Gradient {
    StorageId storage = kExternal;
    bool present = false;
    bool viewed = false;
  };
  struct Given {
    ValueId value = kNone;
    StorageId gradient = kExternal;
  };
  void give(ValueId value, StorageId gradient, bool viewed);
  void add(const Given& given);
  Gradient& at(ValueId id) { return gradients_[static_cast<std::size_t>(id)]; }
  const Gradient& of(ValueId id) const { return gradients_[static_cast<std::size_t>(id)]; }

  const GraphView& view_;
  Storages& storages_;
  TapeWriter& writer_;
  std::vector<Gradient> gradients_;  ///< by value
  std::vector<Given> waiting_;       ///< for settle()
  std::vector<bool> given_;          ///< by parameter: it has one
  std::vector<TapeEvent> taken_;     ///< for hand_over()
};

}  // namespace shardplan::tape
