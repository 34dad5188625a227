// Decoders whose layers are not all alike: dense and sparse ones in runs.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/norms.h"

namespace shardplan {

/// Consecutive layers of one kind.
struct LayerRun {
  std::int64_t start = 0, count = 0;
  bool sparse = false;
};

/// Groups layers 0..count-1 by is_sparse(i).
template <typename Sparse>
std::vector<LayerRun> layer_runs(std::int64_t count, Sparse&& is_sparse) {
  std::vector<LayerRun> runs;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool sparse = is_sparse(i);
    if (runs.empty() || runs.back().sparse != sparse) runs.push_back({i, 0, sparse});
    ++runs.back().count;
  }
  return runs;
}

/// What surrounds the layers of a causal language model with rotary positions and RMS norms.
struct DecoderStack {
  std::int64_t hidden = 0, vocabulary = 0;
  bool tied = false;
  std::int64_t rotary_dim = 0;  ///< columns of cos and of sin
  bool rotary_f32 = false;      ///< the tables stay in fp32
  NormKind norm = NormKind::rms;
  std::vector<LayerRun> runs;
  AttentionKind attention = AttentionKind::sdpa;
};

/// What the model makes once for all layers.
struct Positions {
  RotaryTables tables;
  std::int32_t mask = kNone;  ///< in Model::shared, eager attention only
};

/// Registers model.embed_tokens, model.layers.*, model.norm and lm_head, then writes the segments.
/// `declare(m, sparse)` registers one layer and returns its modules; `forward(g, modules, sparse,
/// positions, x)` writes its ops and returns its output.
template <typename Declare, typename Forward>
Model build_decoder(ModelBuilder& m, const DecoderStack& stack, Declare&& declare,
                    Forward&& forward) {
  using Layer = decltype(declare(m, true));
  const auto embed = m.embedding("model.embed_tokens", stack.vocabulary, stack.hidden);
  std::vector<std::pair<LayerRun, Layer>> layers;
  for (const LayerRun& run : stack.runs) {
    m.begin_repeat("model.layers", run.count, run.start);
    layers.emplace_back(run, declare(m, run.sparse));
    m.end_repeat();
  }
  const auto norm = m.rms_norm("model.norm", stack.hidden);
  const auto head = stack.tied ? m.tied_linear("lm_head", embed)
                               : m.linear("lm_head", stack.hidden, stack.vocabulary);

  Graph& e = m.begin_segment("embedding");
  const ValueId tokens = apply(e, embed, Scale::tokens);
  e.name_in_model(tokens);
  e.set_output(tokens);
  const Positions positions{share_rotary(m, stack.rotary_dim, Scale::sequence, stack.rotary_f32),
                            share_causal_mask(m, stack.attention)};
  for (const auto& [run, layer] : layers) {
    Graph& g = m.begin_segment(run.sparse ? "sparse layers" : "layers", run.count, true);
    const ValueId x = g.chained_input({stack.hidden, Scale::tokens});
    g.set_output(forward(g, layer, run.sparse, positions, x));
  }
  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({stack.hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, normalize(h, stack.norm, norm, last)));
  return m.build();
}

}  // namespace shardplan
