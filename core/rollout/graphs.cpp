#include "rollout/graphs.h"

#include <algorithm>

#include "base/checked.h"
#include "lowering/library_workspaces.h"

namespace shardplan {
namespace {

/// Of passes of at most so many tokens: 1, 2, 4, every eighth to 256, every sixteenth above
/// (vllm/config/vllm.py, _set_cudagraph_sizes).
std::int64_t sizes_up_to(std::int64_t tokens) {
  constexpr std::int64_t kFine = 256;
  std::int64_t sizes = 0;
  for (const std::int64_t first : {1, 2, 4}) sizes += first <= tokens ? 1 : 0;
  sizes += std::min(tokens, kFine - 1) / 8;
  return tokens < kFine ? sizes : sizes + 1 + (tokens - kFine) / 16;
}

/// Heads and their width, as the parameters have them.
std::int64_t query_width(const Model& model) {
  std::int64_t width = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t) {
    if (p.name.find("q_proj.weight") != std::string::npos && !p.shape.empty())
      width = std::max(width, p.shape.front());
  });
  return width > 0 ? width : model.facts.hidden;
}

}  // namespace

/// Graphs of passes that take prompts, too, are cut at attention.
std::int64_t most_in_cut_graph(const RolloutEngine& engine) {
  return std::min(engine.engine->graphs.most_tokens, 2 * engine.sequences);
}

std::int64_t most_in_graph(const RolloutEngine& engine) {
  return std::min(most_in_cut_graph(engine), engine.sequences);
}

std::int64_t graph_bytes(const RolloutEngine& engine, const Model& generator, const Gpu& gpu) {
  const EngineDescription& e = *engine.engine;
  if (!engine.cuda_graphs) return 0;
  if (e.graphs.most_tokens == 0) {
    const std::int64_t most = engine.graph_sequences > 0
                                  ? std::min(engine.graph_sequences, engine.sequences)
                                  : engine.sequences;
    return checked_mul(e.graph_bytes, most);
  }
  const std::int64_t whole = most_in_graph(engine);
  const std::int64_t of_layer =
      checked_add(checked_mul(sizes_up_to(most_in_cut_graph(engine)), e.graphs.cut_bytes),
                  checked_mul(sizes_up_to(whole), e.graphs.whole_bytes));
  constexpr double kFloat = 4;
  const double parts = e.graphs.attention_parts * kFloat * static_cast<double>(whole) *
                       static_cast<double>(query_width(generator)) /
                       static_cast<double>(engine.tensor_parallel);
  return checked_add(checked_mul(generator.facts.layers, of_layer),
                     checked_add(2 * cublas_workspace(gpu), static_cast<std::int64_t>(parts)));
}

}  // namespace shardplan
