#include "parallel/whole_graph.h"

namespace shardplan {

ValueId own_tokens(GraphRewrite& w, ValueId all, Extent whole, std::int64_t ranks) {
  Communication with;
  with.forward = Exchange::slice;
  with.backward = Exchange::all_gather;
  return w.exchange(all, with, {whole.per, whole.scale, ranks});
}

Graph whole_graph(const Graph& graph, std::int64_t ranks) {
  if (ranks == 1) return graph;
  GraphRewrite w(graph);
  for (const Input& in : graph.inputs()) w.input(in, graph.value(in.value).extent);
  for (const Op& op : graph.ops()) w.append(w.with_inputs(op), graph.value(op.out).extent);
  const Extent whole = graph.value(graph.output()).extent;
  w.replace(graph.output(), own_tokens(w, w.at(graph.output()), whole, ranks));
  return w.finish();
}

}  // namespace shardplan
