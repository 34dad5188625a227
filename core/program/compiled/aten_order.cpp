#include "program/compiled/aten_order.h"

#include <algorithm>
#include <optional>
#include <set>

namespace shardplan::compiled {
namespace {

/// Of a linear: the weight is transposed, and the result gets its dimensions back. What it reads
/// loses one of them, once for all linears that read it.
constexpr std::int64_t kProduct = 3, kRowsOfInput = 1;
/// The heads of queries, keys and values are taken apart and brought to the front; the call, the
/// result taken out of what it returns, and both undone.
constexpr std::int64_t kAttention = 3 * 2 + 2 + 2;
/// Heads of keys or values for as many of queries: unsqueeze, expand, clone, view.
constexpr std::int64_t kRepeatedHeads = 4;
/// torch.stack of two: each is unsqueezed, and the result viewed as one row.
constexpr std::int64_t kStack = 4;
/// x / (1 + exp(−x)), in fp32 between two casts (torch/_inductor/decomposition.py).
constexpr std::int64_t kSilu = 4, kCasts = 2;
/// The variance and the mean with what takes them apart, the root, and what is scaled by it.
constexpr std::int64_t kLayerNorm = 9, kNormal = 7;  // up to what is neither scaled nor moved
/// Attention written out: of each factor its heads are brought to the front and folded into the
/// batch, and the result unfolded. Keys are transposed, and a layer's own mask sliced twice;
/// probabilities are folded alone. The result's heads are brought back.
constexpr std::int64_t kFactor = 2 + 3, kUnfolded = 2, kScores = 2 * kFactor + 1 + kUnfolded + 2,
                       kMixed = kFactor + 2 + kUnfolded, kHeadsBack = 3;
constexpr std::int64_t kSoftmax = 5;

/// Scores that are made of queries and keys in fp32, whose own code says so: GPT-Neo's, the one
/// attention written out that was counted.
ValueId wide_scores(const Graph& graph) {
  std::set<ValueId> wide;
  for (const Op& op : graph.ops()) {
    const bool widened = wide.count(op.in[0]) > 0;
    if (op.kind == OpKind::matmul && widened) return op.out;
    if (op.kind == OpKind::to_f32 || (op.kind == OpKind::fold_heads && widened))
      wide.insert(op.out);
  }
  return kNone;
}

class Counter {
 public:
  Counter(const tape::GraphView& view, const Trace& trace)
      : view_(view),
        trace_(trace),
        scores_(wide_scores(view.graph())),
        once_(static_cast<std::size_t>(trace.first_backward), false) {}

  std::vector<std::int64_t> count() {
    std::vector<std::int64_t> order;
    for (NodeId id = 0; id < trace_.first_backward; ++id) {
      const std::optional<std::int64_t> nodes = nodes_of(id);
      if (!nodes) break;
      made_ += *nodes;
      order.push_back(made_ + cuts_before(trace_.graph.at(id).op));
    }
    return order;
  }

 private:
  const Op& op(NodeId id) const {
    return view_.graph().ops()[static_cast<std::size_t>(trace_.graph.at(id).op)];
  }

  /// Slices of their own: they have no node in the trace.
  std::int64_t cuts_before(std::int32_t op) const {
    const auto& ops = view_.graph().ops();
    const auto end = ops.begin() + std::max(op, 0);
    return std::count_if(ops.begin(), end, [&](const Op& o) {
      return o.cuts && trace_.graph.at(trace_.given(o.out)).kind != NodeKind::input;
    });
  }

  /// Made from what all blocks share: equal expressions of later blocks are the first one's.
  bool is_made_once(NodeId id) const {
    const Node& node = trace_.graph.at(id);
    const auto* first = node.in.data();
    return node.inputs > 0 && std::all_of(first, first + node.inputs, [&](NodeId in) {
             const Node& read = trace_.graph.at(in);
             return once_[static_cast<std::size_t>(in)] ||
                    (read.kind == NodeKind::input && !read.resident && !read.viewed);
           });
  }

  /// The call adds a bias itself, but autocast casts it before.
  std::int64_t casts_bias(const Op& linear) const {
    return linear.bias != kNone && view_.casts_weight(linear) ? 1 : 0;
  }

  std::optional<std::int64_t> nodes_of(NodeId id) {
    const Node& node = trace_.graph.at(id);
    if (node.kind == NodeKind::input || node.kind == NodeKind::chained) return 0;
    once_[static_cast<std::size_t>(id)] = is_made_once(id);
    if (once_[static_cast<std::size_t>(id)]) return 0;
    if (node.kind == NodeKind::attention) return trace_.given(op(id).out) == id ? kAttention : 0;
    if (op(id).kind == OpKind::sdpa && node.kind == NodeKind::pointwise)
      return node.elements > trace_.graph.at(node.in[0]).elements ? kRepeatedHeads : 1;
    if (op(id).kind == OpKind::layer_norm) return nodes_of_norm(id);
    if (scores_ != kNone && node.kind == NodeKind::reduction) return 0;  // a softmax's, with it
    if (trace_.given(op(id).out) != id)                                  // a cast of what it reads
      return node.kind == NodeKind::pointwise ? std::optional<std::int64_t>(1) : std::nullopt;
    return nodes_of_operation(id);
  }

  /// What it reads is cast, and its weight and bias: at the cast, where the trace has it.
  std::int64_t nodes_of_norm(NodeId id) const {
    const Op& norm = op(id);
    const NodeId given = trace_.given(norm.in[0]), result = trace_.given(norm.out);
    const auto narrow = [](DType type) { return type == DType::f32 ? 0 : 1; };
    const std::int64_t casts =
        narrow(trace_.graph.at(given).type) + 2 * narrow(view_.parameter_type(norm.weight));
    const Node& node = trace_.graph.at(id);
    const bool cast = node.kind == NodeKind::pointwise && node.in[0] == given && node.inputs == 1;
    const auto is_normal = [&](const Node& made) {
      return made.kind == NodeKind::pointwise && made.inputs == 3 && made.op == node.op;
    };
    if (id != result) return cast ? casts : is_normal(node) ? kNormal : 0;
    const std::int64_t made = is_normal(trace_.graph.at(node.in[0])) ? kNormal : 0;
    return kLayerNorm - made + narrow(node.type) + (node.in[0] == given ? casts : 0);
  }

  /// Autocast narrows both factors again: queries, which nothing is done with before, by one cast
  /// in place of two (torch/_inductor/fx_passes/joint_graph.py, pointless_convert).
  std::int64_t narrowed_at_once() const {
    return trace_.graph.at(trace_.given(scores_)).type == DType::f32 ? 0 : 1;
  }

  /// Of attention whose scores are in fp32.
  std::optional<std::int64_t> written_out(const Op& o) const {
    switch (o.kind) {
      case OpKind::matmul:
        return o.out == scores_ ? kScores - narrowed_at_once() : kMixed;
      case OpKind::softmax:
        return kSoftmax;
      case OpKind::copy:
        return kHeadsBack;
      case OpKind::tanh:
        return 1;
      default:
        return 0;  // counted with the product
    }
  }

  /// What attention has made head by head, token by token (StableLM).
  std::optional<std::int64_t> copies_heads(const Node& copy) const {
    const bool attended = trace_.graph.at(copy.in[0]).kind == NodeKind::attention;
    return attended ? std::optional<std::int64_t>(1) : std::nullopt;
  }

  std::optional<std::int64_t> nodes_of_operation(NodeId id) {
    const Node& node = trace_.graph.at(id);
    switch (op(id).kind) {
      case OpKind::linear:
        return kProduct + (rows_.insert(node.in[0]).second ? kRowsOfInput : 0) + casts_bias(op(id));
      case OpKind::silu:
        return kSilu + (node.type == DType::f32 ? 0 : kCasts);
      case OpKind::cat:
        return op(id).stacks ? kStack : 1;
      case OpKind::copy:
        return scores_ == kNone ? copies_heads(node) : written_out(op(id));
      case OpKind::matmul:
      case OpKind::fold_heads:
      case OpKind::softmax:
      case OpKind::tanh:
        return scores_ == kNone ? std::nullopt : written_out(op(id));
      case OpKind::to_f32:
      case OpKind::to_like:
      case OpKind::add:
      case OpKind::scalar:
      case OpKind::mul:
      case OpKind::power:
      case OpKind::mean:
      case OpKind::rsqrt:
        return 1;
      default:
        return std::nullopt;
    }
  }

  const tape::GraphView& view_;
  const Trace& trace_;
  ValueId scores_;
  std::vector<bool> once_;
  std::set<NodeId> rows_;  ///< what linears have read
  std::int64_t made_ = 0;
};

}  // namespace

std::vector<std::int64_t> aten_order(const tape::GraphView& view, const Trace& trace) {
  return Counter(view, trace).count();
}

}  // namespace shardplan::compiled
