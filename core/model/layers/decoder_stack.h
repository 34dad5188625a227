// Decoders whose layers are not all alike: dense and sparse ones in runs.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/norms.h"
#include "model/layers/rotary.h"
#include "model/layers/token_prediction.h"

namespace shardplan {

/// Consecutive layers of one kind.
struct LayerRun {
  std::int64_t start = 0, count = 0;
  int kind = 0;  ///< of LayerTrait, or a family's own
};
enum LayerTrait { kSparseLayer = 1, kAttendingLayer = 2 };

/// Groups layers 0..count-1 by kind_of(i).
template <typename Kind>
std::vector<LayerRun> layer_runs(std::int64_t count, Kind&& kind_of) {
  std::vector<LayerRun> runs;
  for (std::int64_t i = 0; i < count; ++i) {
    const int kind = kind_of(i);
    if (runs.empty() || runs.back().kind != kind) runs.push_back({i, 0, kind});
    ++runs.back().count;
  }
  return runs;
}

/// What surrounds the layers of a causal language model with rotary positions and RMS norms.
struct DecoderStack {
  std::int64_t hidden = 0, vocabulary = 0;
  bool tied = false;
  std::int64_t rotary_dim = 0;  ///< columns of cos and of sin; 0: no rotary positions
  bool rotary_f32 = false;      ///< the tables stay in fp32
  NormKind norm = NormKind::rms;
  std::vector<LayerRun> runs;
  AttentionKind attention = AttentionKind::sdpa;
  std::string_view embedding = "model.embed_tokens", layers = "model.layers";
  std::string_view final_norm = "model.norm";
  bool attends = true;  ///< some layer does
  bool scales_embedding = false;
  bool wide_stream = false;  ///< hidden states between layers are fp32 (residual_in_fp32)
  LogitMap logits = LogitMap::none;
  bool tables_of_batch = false;  ///< rotary tables have a row for each token of the batch
};

/// What the model makes once for all layers.
struct Positions {
  RotaryTables tables;
  std::int32_t mask = kNone;  ///< in Model::shared, eager attention only
};

/// Registers the embedding, the layers, the final norm and lm_head, then writes the segments.
/// `declare(m, kind)` registers one layer and returns its modules; `forward(g, modules, kind,
/// positions, x)` writes its ops and returns its output.
template <typename Declare, typename Forward>
Model build_decoder(ModelBuilder& m, const DecoderStack& stack, Declare&& declare,
                    Forward&& forward) {
  using Layer = decltype(declare(m, 1));
  const auto embed = m.embedding(stack.embedding, stack.vocabulary, stack.hidden);
  std::vector<std::pair<LayerRun, Layer>> layers;
  for (const LayerRun& run : stack.runs) {
    m.begin_repeat(stack.layers, run.count, run.start);
    layers.emplace_back(run, declare(m, run.kind));
    m.end_repeat();
  }
  const auto norm = m.rms_norm(stack.final_norm, stack.hidden);
  const std::int64_t further = m.options().further_tokens;
  std::vector<std::pair<TokenPredictor, Layer>> predictors;
  for (std::int64_t i = 0; i < further; ++i) {
    m.begin_repeat("mtp.layers", 1, i);
    const TokenPredictor own = token_predictor(m, stack.hidden, stack.norm);
    predictors.emplace_back(own, declare(m, stack.runs.back().kind));
    m.end_repeat();
  }
  const auto head = stack.tied ? m.tied_linear("lm_head", embed)
                               : m.linear("lm_head", stack.hidden, stack.vocabulary);

  Graph& e = m.begin_segment("embedding");
  ValueId tokens = apply(e, embed, Scale::tokens);
  if (stack.scales_embedding) tokens = e.map(OpKind::scalar, tokens);
  e.name_in_model(tokens);
  e.set_output(tokens);
  Positions positions;
  if (stack.rotary_dim > 0)
    positions.tables =
        share_rotary(m, stack.rotary_dim, stack.tables_of_batch ? Scale::tokens : Scale::sequence,
                     stack.rotary_f32);
  if (stack.attends) positions.mask = share_causal_mask(m, stack.attention);
  for (const auto& [run, layer] : layers) {
    Graph& g = m.begin_segment((run.kind & kSparseLayer) != 0 ? "sparse layers" : "layers",
                               run.count, true);
    const ValueId x = g.chained_input({stack.hidden, Scale::tokens});
    g.set_output(forward(g, layer, run.kind, positions, x));
  }
  for (std::int64_t i = 0; i < further; ++i) {
    const auto& own = predictors[static_cast<std::size_t>(i)];
    add_prediction(m, own.first, embed, stack.norm, norm, i, [&](Graph& g, ValueId x) {
      return forward(g, own.second, stack.runs.back().kind, positions, x);
    });
  }
  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({stack.hidden * (1 + further), Scale::tokens});
  if (further > 0) {
    h.set_output(predicted_losses(h, head, last, stack.hidden, further, stack.logits));
    return m.build();
  }
  ValueId normal = normalize(h, stack.norm, norm, last);
  if (stack.wide_stream)
    normal = h.map(OpKind::to_like, normal, parameter_value(h, m, norm.weight, norm.width));
  h.set_output(language_model_loss(h, head, normal, stack.logits));
  return m.build();
}

}  // namespace shardplan
