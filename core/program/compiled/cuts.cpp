#include "program/compiled/cuts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/units.h"

namespace shardplan::compiled {
namespace {

using Parts = std::vector<std::int32_t>;

/// Goes over operations from the last to the first, as gradients come.
class Cutter {
 public:
  Cutter(const Model& model, const Regime& regime, std::int64_t graph_bytes)
      : model_(model), regime_(regime), graph_bytes_(graph_bytes) {}

  /// By operation, the graph that it is in, counted from the segment's first one.
  Parts cut(const Graph& graph, bool whole) {
    Parts parts(graph.ops().size(), 0);
    for (std::size_t i = parts.size(); i-- > 0;) {
      if (!whole || i + 1 == parts.size()) begin_graph();
      parts[i] = graphs_;
      note_mask(graph.ops()[i]);
      bytes_ += bytes_of(graph.ops()[i].weight) + bytes_of(graph.ops()[i].bias);
    }
    for (std::int32_t& part : parts) part = graphs_ - part;
    return parts;
  }

  /// The same of the operations of one part, from its last to its first; what they are in is
  /// written to `cut`, counted from `first` on. Returns the next number.
  std::int32_t cut_part(const Graph& graph, const Parts& parts, std::int32_t part,
                        std::int32_t first, Parts& cut) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i] == part) own.push_back(i);
    for (std::size_t k = own.size(); k-- > 0;) {
      begin_graph();
      const Op& op = graph.ops()[own[k]];
      cut[own[k]] = graphs_;
      bytes_ += bytes_of(op.weight) + bytes_of(op.bias);
    }
    const std::int32_t last = bytes_ == 0 && graphs_ > 0 ? graphs_ - 1 : graphs_;
    for (const std::size_t i : own) cut[i] = first + last - std::min(cut[i], last);
    return first + last + 1;
  }

  std::int64_t causal() const { return static_cast<std::int64_t>(causal_.size()); }
  std::int64_t sliding() const { return static_cast<std::int64_t>(sliding_.size()); }

 private:
  void note_mask(const Op& op) {
    if (op.kind == OpKind::sdpa && op.causal)
      (op.mask_from > 0 ? sliding_ : causal_).insert(graphs_);
  }
  void begin_graph() {
    if (bytes_ < (graphs_ == 0 ? std::min(kLastGraphBytes, graph_bytes_) : graph_bytes_)) return;
    ++graphs_;
    bytes_ = 0;
  }
  std::int64_t bytes_of(ParameterId id) const {
    if (id == kNone) return 0;
    const Parameter& p = model_.parameters[static_cast<std::size_t>(id)];
    return p.trainable ? p.numel * size_of(p.adapter ? regime_.adapters : regime_.params) : 0;
  }

  static constexpr std::int64_t kLastGraphBytes = kMiB;
  const Model& model_;
  const Regime& regime_;
  std::int64_t graph_bytes_;
  std::int32_t graphs_ = 0;  ///< that have ended
  std::int64_t bytes_ = 0;   ///< of parameters in the graph that is open
  std::set<std::int32_t> causal_, sliding_;
};

}  // namespace

CutChoice choose(const std::vector<Cut>& cuts, const std::vector<std::int64_t>& kept) {
  std::int64_t sum = 0, count = 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    sum = checked_add(sum, checked_mul(kept[i], cuts[i].count));
    count += cuts[i].count;
  }
  std::optional<std::size_t> above, below;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const bool enough = kept[i] >= sum / count;
    if (enough && (!above || kept[i] < kept[*above])) above = i;
    if (!enough && (!below || kept[i] > kept[*below])) below = i;
  }
  if (!below) return {*above, *above, count};
  const std::int64_t more = sum - checked_mul(count, kept[*below]);
  return {*above, *below, std::min(count, ceil_div(more, kept[*above] - kept[*below]))};
}

Parts cut_between_breaks(const Model& model, const Regime& regime, const Graph& graph,
                         const Parts& parts, std::int64_t graph_bytes) {
  Parts cut(parts.size(), kNone);
  std::int32_t next = 1;
  const std::set<std::int32_t> all(parts.begin(), parts.end());
  for (const std::int32_t part : all)
    if (part != kNone)
      next = Cutter(model, regime, graph_bytes).cut_part(graph, parts, part, next, cut);
  return cut;
}

bool is_cut(const Parts& parts) {
  return std::find(parts.begin(), parts.end(), 1) != parts.end() &&
         std::find(parts.begin(), parts.end(), 0) == parts.end();
}

GraphCuts graph_cuts(const Model& model, const Regime& regime, std::int64_t graph_bytes,
                     bool whole_blocks) {
  GraphCuts cuts;
  cuts.segments.resize(model.segments.size());
  if (graph_bytes == 0) return cuts;
  Cutter cutter(model, regime, graph_bytes);
  for (std::size_t s = model.segments.size(); s-- > 0;) {
    const Segment& segment = model.segments[s];
    std::map<Parts, std::int64_t> counts;
    for (std::int64_t k = 0; k < segment.repeat; ++k)
      ++counts[cutter.cut(segment.graph, whole_blocks && segment.checkpointable)];
    for (const auto& [parts, count] : counts) cuts.segments[s].push_back({parts, count});
  }
  if (whole_blocks) return cuts;
  cuts.causal = std::max<std::int64_t>(1, cutter.causal());
  cuts.sliding = std::max<std::int64_t>(1, cutter.sliding());
  return cuts;
}

}  // namespace shardplan::compiled
