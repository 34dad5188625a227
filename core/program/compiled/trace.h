// Writes down a segment as the graph that AOTAutograd partitions: what each operation of the
// forward pass is decomposed to, and what its backward computes from what
// (torch/_decomp/decompositions.py, torch/_inductor/decomposition.py).
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "program/compiled/nodes.h"
#include "program/compiled/tied_head.h"
#include "program/compiled/trials.h"
#include "program/tape/graph_view.h"

namespace shardplan::compiled {

/// What else is to know of a segment than its operations.
struct TraceOptions {
  /// The products of weights' gradients come after the gradients of all that the segment computes:
  /// Inductor orders a recomputed block like that.
  bool defers_weights = false;
  TiedHead tied;
  /// The graph breaks between the head and the loss (ModelFacts::breaks_before_loss).
  bool loss_apart = false;
  /// Dynamo has traced the causal mask too: attention reads it.
  bool masked = false;
  /// By operation, the graph that it is in (cuts.h); empty: all are in one.
  std::vector<std::int32_t> parts;
  /// The graph breaks in every layer, at functions that Dynamo is told to leave out: each layer's
  /// attention makes a mask of its own, in its operands' type (compiled/breaks.h).
  bool breaks = false;
  /// Of the GPU: kernels sum gradients of parameters on each.
  std::int64_t multiprocessors = 0;
  double product_balance = 0;  ///< TapeOptions
  /// Embeddings are none of the graphs': the gradient of a table is made in its own type.
  bool eager_tables = false;
  /// What the segment begins with is an argument of its graph, which fuses with nothing.
  bool begins_graph = false;
  /// What the segment begins with is computed again anyway: a cut costs nothing there.
  bool input_again = false;
  bool shared_before = false;  ///< TapeOptions
  /// What the model returns is cast inside of its graph, where the caller wants it in fp32.
  bool widens = false;
  /// A hook tells the frozen embeddings of words to need a gradient (enable_input_require_grads).
  bool tells = false;
  bool embeds_in_module = false;        ///< ModelFacts
  std::int64_t scattered_operands = 0;  ///< TapeOptions
};

class Trace {
 public:
  /// Sets the types of the values of `view`, which outlives the trace.
  Trace(tape::GraphView& view, const TraceOptions& options);

  JointGraph graph;
  NodeId input = kNone;     ///< the chained input
  NodeId output = kNone;    ///< the chained output; kNone: it needs none
  NodeId returned = kNone;  ///< what the model returns beside the loss
  bool widened = false;     ///< as a cast to fp32
  /// loss_apart: the gradient of that, and what the head reads, which the graph returns as well.
  NodeId returned_gradient = kNone, passed = kNone;
  NodeId tangent = kNone;         ///< the output's gradient
  NodeId input_gradient = kNone;  ///< kNone: it needs none
  NodeId leaf = kNone;            ///< embeddings told to need a gradient, and not handed on as such
  NodeId first_backward = 0;
  /// What waits for the embeddings' gradient, where the head's weight is their table: the gradient
  /// of the logits and what the head read.
  std::vector<NodeId> held_for_table;
  std::vector<TimedProduct> timed;  ///< in the order of the forward pass

  /// The node of what the segment is given.
  NodeId given(ValueId value) const { return values_[static_cast<std::size_t>(value)]; }

 private:
  /// How a narrow copy of a tensor lies: row by row, or turned, as the other operand of a product.
  enum class Layout : std::uint8_t { rows, turned };

  // Forward.
  void forward(std::size_t i);
  void embedding(std::size_t i);
  void each_element(std::size_t i);
  bool adds_bias(const Op& op, const std::array<NodeId, 3>& in) const;
  void norm(std::size_t i);
  void softmax(std::size_t i);
  void attention(std::size_t i);
  void math_attention(std::size_t i);
  bool attends_as_math(const Op& op) const;
  void reduce(std::size_t i);
  void mean_loss(std::size_t i);
  void linear(std::size_t i);
  void narrow_linear(std::size_t i, NodeId x);
  void find_unwrapped();
  void copy(std::size_t i);
  // Kernels that the model's own code starts (trace_kernels.cpp).
  void kernel(std::size_t i);
  void norm_kernel(std::size_t i);
  void gate_kernel(std::size_t i);
  void rotary_kernel(std::size_t i);
  void loss_kernel(std::size_t i);
  void int8_linear(std::size_t i);
  void int8_linear_backward(std::size_t i, NodeId g);
  NodeId attention_mask(const Op& op, DType type);
  NodeId read(std::size_t i, std::size_t k);
  NodeId weight(const Op& op, ParameterId id);
  NodeId parameter(ParameterId id);
  /// Heads of queries that a head of keys and values serves, where each of these is given to the
  /// kernel as many: under a mask.
  std::int64_t shared_by(std::size_t i) const;

  // Backward.
  void backward(std::size_t i);
  void linear_backward(std::size_t i, NodeId g);
  NodeId input_product(std::size_t i, NodeId g);
  NodeId weight_in_backward(std::size_t i);
  /// Elements of a row of the linear's result, rounded up to what products want; 0: it is that
  /// long.
  std::int64_t padded_row(std::size_t i) const;
  /// Both products of a linear's backward read copies of its gradient with longer rows.
  bool copies_gradient(std::size_t i) const;
  bool copies_for_input(std::size_t i) const;
  ProductSize product_size(std::size_t i) const;
  std::int64_t padded_weight(std::size_t i) const;
  NodeId padded_copy(std::size_t i, NodeId g);
  NodeId narrow_input_product(std::size_t i, NodeId g);
  NodeId narrow_weight_product(const Op& op, NodeId g, NodeId x);
  void attention_backward(std::size_t i, NodeId g);
  void math_attention_backward(std::size_t i, NodeId g);
  void norm_backward(std::size_t i, NodeId g);
  void softmax_backward(std::size_t i, NodeId g);
  bool lies_by_heads(NodeId g, std::int64_t width) const;
  void mul_backward(std::size_t i, NodeId g);
  void spread_backward(std::size_t i, NodeId g);
  void kernel_backward(std::size_t i, NodeId g);
  void norm_kernel_backward(std::size_t i, NodeId g);
  void gate_kernel_backward(std::size_t i, NodeId g);
  void rotary_kernel_backward(std::size_t i, NodeId g);
  void loss_kernel_backward(std::size_t i);
  NodeId zeros(std::int64_t elements, DType type);
  /// A gradient of heads as a graph before the rotation has it.
  NodeId taken_from_heads(NodeId g);
  void hold_for_table(const Op& op, NodeId g, NodeId x);
  bool is_tangent_alone(NodeId g) const;
  void table_backward(const Op& op, NodeId g);
  void give(std::size_t i, std::size_t k, NodeId g);
  void give_parameter(ParameterId id, NodeId g);
  void accumulate(ValueId value, NodeId g);
  NodeId summed_to(NodeId g, std::int64_t elements, DType type);

  NodeId add(NodeKind kind, std::initializer_list<NodeId> in, std::int64_t elements, DType type);
  NodeId pointwise(std::initializer_list<NodeId> in, std::int64_t elements, DType type) {
    return add(NodeKind::pointwise, in, elements, type);
  }
  /// Node::operations.
  NodeId counted(NodeId id, std::int32_t operations) {
    graph.at(id).operations = operations;
    return id;
  }
  NodeId cast(NodeId from, DType type);
  NodeId in_fp32(NodeId x, std::int64_t elements);
  NodeId realized(NodeId id);
  NodeId gate_gradient(NodeId g, NodeId x, DType type);
  /// A kernel's result, where its call reads whole tensors.
  NodeId call(std::initializer_list<NodeId> in, std::int64_t elements, DType type,
              NodeId over = kNone) {
    const NodeId made = add(NodeKind::kernel, in, elements, type);
    graph.at(made).over = over;
    return made;
  }
  NodeId further(NodeId of_call, std::int64_t elements, DType type, NodeId over = kNone) {
    const NodeId made = call({of_call, over}, elements, type, over);
    graph.at(made).further = true;
    return made;
  }
  /// Of the graph's caller, who may still need it.
  bool is_given(NodeId id) const {
    const Node& node = graph.at(id);
    return !options_.parts.empty() &&
           (node.part != part() || node.kind == NodeKind::chained || node.kind == NodeKind::input);
  }
  /// In the type of narrow products; `width`: of its rows.
  NodeId narrowed(NodeId from, std::int64_t width, Layout layout);
  std::int64_t count(ValueId value) const {
    return elements(view_.extent_of(value), view_.sizes());
  }
  NodeId& of(ValueId value) { return values_[static_cast<std::size_t>(value)]; }

  tape::GraphView& view_;
  TraceOptions options_;
  bool in_backward_ = false;
  bool seen_words_ = false;
  std::int32_t part() const {
    return op_ == kNone || options_.parts.empty() ? 0
                                                  : options_.parts[static_cast<std::size_t>(op_)];
  }
  std::int32_t op_ = kNone;                           ///< the operation that nodes are added for
  std::vector<NodeId> values_, gradients_;            ///< by ValueId
  std::vector<std::array<NodeId, 3>> reads_, sides_;  ///< by operation
  std::map<ParameterId, NodeId> parameters_;
  std::set<ParameterId> unwrapped_;      ///< taken for activations (find_unwrapped)
  std::multimap<NodeId, NodeId> casts_;  ///< from, made
  struct Narrowed {
    NodeId from = kNone;
    Layout layout = Layout::rows;
    NodeId scale = kNone, made = kNone;
    bool in_backward = false;
  };
  std::vector<Narrowed> narrowed_;
  std::vector<NodeId> zeros_;
  struct Deferred {
    std::int32_t op = kNone;
    NodeId gradient = kNone;
  };
  std::vector<Deferred> deferred_;  ///< weights' gradients
  NodeId weight_product(std::int32_t op, NodeId g);
  void give_weight(const Op& op, NodeId product);
};

/// Rows that a reduction over the last dimension of `extent` leaves.
std::int64_t rows_of(Extent extent, const Sizes& sizes);

}  // namespace shardplan::compiled
