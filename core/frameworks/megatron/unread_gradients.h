// The tensors that Transformer Engine hands autograd in place of weights' gradients.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/model.h"
#include "program/program.h"

namespace shardplan {

/// Products add their weights' gradients to the buffer themselves and hand autograd a tensor that
/// nobody reads: one for each shape, kept for good (module/base.py, get_dummy_wgrad). Megatron's
/// weights are counted: queries, keys and values are one, and so are the gate and what it gates.
class UnreadGradients {
 public:
  UnreadGradients() = default;  ///< of weights whose gradients autograd is given
  /// Of a stage's weights, in `type`. `tied`: of an embedding that makes this stage's logits.
  UnreadGradients(const Model& own, DType type, ParameterId tied);

  /// All of them, as the steady state has them.
  std::vector<Event> all() const;
  /// Bytes of what the gradient of parameter `id` makes; 0 where its shape is there.
  std::int64_t made_with(ParameterId id);

 private:
  using Shape = std::pair<std::int64_t, std::int64_t>;  ///< rows, elements

  std::map<ParameterId, Shape> shapes_;
  std::map<Shape, std::int64_t> missing_;  ///< in bytes
};

}  // namespace shardplan
