// A segment's forward and backward pass as one graph, in which torch.compile decides what it keeps:
// AOTAutograd's joint graph, after decompositions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/dtype.h"
#include "model/graph.h"

namespace shardplan::compiled {

/// A row of JointGraph::nodes.
using NodeId = std::int32_t;

enum class NodeKind : std::uint8_t {
  input,      ///< there before: a parameter, a shared tensor, a gradient from behind
  chained,    ///< what the segment before has made
  pointwise,  ///< element by element: compiled into the kernels that read it
  reduction,  ///< fewer elements than it reads
  random,     ///< drawn: a dropout's mask
  lookup,     ///< rows of a table
  scatter,    ///< added to zeros, element by element
  product,    ///< cuBLAS
  attention,  ///< a fused kernel; its further results read the first
  kernel,     ///< one that a model's own code starts, such as Liger's; further results likewise
};

/// torch/_functorch/partitioners.py, get_default_op_list, and what Inductor lowers to a call.
struct NodeTraits {
  bool recomputable = false;  ///< the partitioner may compute it again in the backward pass
  bool fusible = false;       ///< the partitioner takes it for part of a larger kernel
  bool call = false;          ///< a kernel of a library: reads and writes whole tensors
};

constexpr NodeTraits traits_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::pointwise:
    case NodeKind::reduction:
      return {.recomputable = true, .fusible = true};
    case NodeKind::chained:  // a sum of the segment before
    case NodeKind::random:
      return {.fusible = true};
    case NodeKind::product:
    case NodeKind::attention:
    case NodeKind::kernel:  // a higher-order operator: neither fused nor computed again
      return {.call = true};
    default:
      return {};
  }
}

struct Node {
  static constexpr std::size_t kMostInputs = 8;

  NodeKind kind = NodeKind::pointwise;
  DType type = DType::f32;
  std::int64_t elements = 0;
  std::array<NodeId, kMostInputs> in{};
  std::size_t inputs = 0;
  std::int32_t op = kNone;  ///< of the segment's graph, whose kernel a call is
  bool backward = false;    ///< depends on a gradient
  /// Keeping it costs nothing: a parameter, or what another computes again anyway.
  bool resident = false;
  bool viewed = false;     ///< read through a view, which counts as an operation
  std::int32_t steps = 1;  ///< operations of AOTAutograd's graph in a row that the node stands for
  /// input: made in the same graph and used in front of a product there, such as a mask that every
  /// block adds.
  bool used_before = false;
  bool logits = false;  ///< counted as logits_and_loss
  /// pointwise, of an activation that is written out: operations of Inductor's that it stands for,
  /// with constants that nothing before it has (inlined.h); 0: not counted.
  std::int32_t operations = 0;
  /// What its kernel needs beside its result, for as long as it runs.
  std::int64_t workspace = 0;
  ParameterId gradient_of = kNone;  ///< the gradient of this parameter
  bool by_heads = false;            ///< it lies head by head, as attention reads and makes it
  bool padded = false;              ///< product: its rows are longer in memory (pad_mm)
  bool aligned = false;             ///< product: of operands with rows as long as those (pad_mm)
  bool realized = false;            ///< pointwise, and has a buffer of its own
  /// pointwise: adds a mask that is made for each element, of positions that are looked up.
  bool masked_by_positions = false;
  /// pointwise, realized: it lies head by head, and what reads it goes along rows of all heads, in
  /// other kernels (torch/_inductor/codegen/simd.py, is_compatible).
  bool turned = false;
  bool by_columns = false;  ///< pointwise: scaled by its column (trace_narrow.cpp)
  /// reduction: of columns or of all, which takes two kernels; what reads it is in none of them
  /// (torch/_inductor/ir.py, Reduction.create_multilayer).
  bool across = false;
  /// reduction: of columns, in a kernel of its own, as it reads what lies row by row in another
  /// order than kernels that go along rows (torch/_inductor/scheduler.py, score_fusion_memory).
  bool alone = false;
  bool of_weight = false;  ///< product: a weight's gradient, not its input's
  /// Read in parts that come in a list, which AOTAutograd follows no further: the backward pass may
  /// make it again for what reads whole tensors (_functorch/partitioners.py,
  /// is_materialized_backwards).
  bool in_parts = false;
  bool untagged = false;  ///< made within a function of autograd, whose results no checkpoint tags
  NodeId over = kNone;    ///< kernel: its result is written where this one is, if nobody needs it
  bool ahead = false;     ///< stands for the next block's (made_ahead.h)
  bool further = false;   ///< kernel: a result of the call that made its first input
  /// Which of the graphs that Dynamo has cut the segment into; kNone: in none, run eagerly or by
  /// autograd.
  std::int32_t part = 0;
};

struct JointGraph {
  std::vector<Node> nodes;  ///< each after what it reads

  const Node& at(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  Node& at(NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
  NodeId end() const { return static_cast<NodeId>(nodes.size()); }
};

}  // namespace shardplan::compiled
