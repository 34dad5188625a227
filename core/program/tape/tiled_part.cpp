#include "program/tape/tiled_part.h"

#include <algorithm>
#include <array>

namespace shardplan::tape {
namespace {

/// Writes operations of one graph into another, whose chained input is what they read.
class Extract {
 public:
  Extract(const Graph& from, const TiledPart& part, bool copies, Graph& to)
      : from_(from), to_(to), copies_(copies), at_(from.values().size(), kNone) {
    to_.set_fused(from.fused());
    input_ = to_.chained_input(from.value(part.in).extent);
    set(part.in, input_);
    for (std::size_t i = part.begin; i < part.end; ++i) add(from.ops()[i]);
    for (const Hold& hold : from.holds())
      if (has(hold.value) && has(hold.until)) to_.hold(get(hold.value), get(hold.until));
    to_.set_output(get(from.ops()[part.end - 1].out));
  }

 private:
  void add(Op op) {
    const ValueId out = op.out;
    for (ValueId& in : op.in) in = get(in);
    if (copies_ && op.kind == OpKind::linear && op.in[0] == input_)
      op.in[0] = to_.map(OpKind::copy, input_);
    op.tiled = false;
    if (op.function != kNone) op.function = to_.add_function(from_.function(op));
    to_.set_autocast(op.autocast);
    set(out, to_.op(op, from_.value(out).extent));
    to_.set_autocast(true);
  }
  bool has(ValueId value) const { return get(value) != kNone; }
  ValueId get(ValueId value) const {
    return value == kNone ? kNone : at_[static_cast<std::size_t>(value)];
  }
  void set(ValueId value, ValueId here) { at_[static_cast<std::size_t>(value)] = here; }

  const Graph& from_;
  Graph& to_;
  bool copies_;
  ValueId input_ = kNone;
  std::vector<ValueId> at_;  ///< by value of the graph that is read
};

/// The value that operations [begin, end) read from outside; kNone: several.
ValueId read_by(const Graph& graph, std::size_t begin, std::size_t end) {
  std::vector<bool> made(graph.values().size());
  ValueId found = kNone;
  for (std::size_t i = begin; i < end; ++i) {
    for (const ValueId in : graph.ops()[i].in) {
      if (in == kNone || in == found || made[static_cast<std::size_t>(in)]) continue;
      if (found != kNone) return kNone;
      found = in;
    }
    made[static_cast<std::size_t>(graph.ops()[i].out)] = true;
  }
  return found;
}

}  // namespace

std::vector<TiledPart> tiled_parts(const Graph& graph, const MlpTiles& tiles) {
  std::vector<TiledPart> parts;
  if (tiles.count == 0) return parts;
  const auto& ops = graph.ops();
  for (std::size_t begin = 0; begin < ops.size(); ++begin) {
    if (!ops[begin].tiled) continue;
    std::size_t end = begin;
    while (end < ops.size() && ops[end].tiled) ++end;
    TiledPart part{.begin = begin, .end = end, .in = read_by(graph, begin, end)};
    if (part.in != kNone) {
      Extract(graph, part, false, part.whole.graph);
      Extract(graph, part, true, part.apart.graph);
      parts.push_back(std::move(part));
    }
    begin = end - 1;
  }
  return parts;
}

const TiledPart* tiled_part_ending(const std::vector<TiledPart>& tiles, std::size_t end) {
  const auto found =
      std::find_if(tiles.begin(), tiles.end(), [&](const TiledPart& t) { return t.end == end; });
  return found != tiles.end() ? &*found : nullptr;
}

}  // namespace shardplan::tape
