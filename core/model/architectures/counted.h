// Networks that are counted by their tensors: what their layers keep for the backward pass is not
// described, and they are refused where anything is estimated.
#pragma once

#include <string>
#include <string_view>

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

/// Registers layers 0..count-1 of `list`, those of one kind in a row at once: `add(kind)` registers
/// the tensors of one.
template <typename KindOf, typename Add>
void register_layers(ModelBuilder& m, const std::string& list, std::int64_t count, KindOf&& kind_of,
                     Add&& add) {
  for (std::int64_t i = 0; i < count;) {
    const auto kind = kind_of(i);
    std::int64_t end = i + 1;
    while (end < count && kind_of(end) == kind) ++end;
    m.begin_repeat(list, end - i, i);
    add(kind);
    m.end_repeat();
    i = end;
  }
}

/// The parameters and segments of `outer`, then those of `text`, whose facts count.
Model joined(Model outer, Model text);

/// Names that begin with `from` begin with `to`.
void rename_prefix(Model& model, std::string_view from, std::string_view to);

/// The text model inside `config`, by its own family: its "text_config", of type `type` where that
/// says none. `tied`: whether its head is its embedding, which the outer class decides.
Model text_inside(const ModelConfig& config, const BuildOptions& options, std::string_view type,
                  bool tied);

/// embed_tokens and the final norm around `layers(m)`, and the head of a causal model.
struct CountedStack {
  std::int64_t hidden = 0, vocabulary = 0;
  bool tied = false, head_bias = false, norm_bias = false;
  std::string_view embedding = "model.embed_tokens", norm = "model.norm";
};
template <typename Layers>
Model counted_decoder(const BuildOptions& options, const ModelFacts& facts, const CountedStack& s,
                      Layers&& layers) {
  ModelBuilder m(options);
  m.facts() = facts;
  m.facts().hidden = s.hidden;
  m.facts().vocabulary = s.vocabulary;
  const auto embed = m.embedding(s.embedding, s.vocabulary, s.hidden);
  layers(m);
  m.layer_norm(s.norm, s.hidden, s.norm_bias);
  if (s.tied) {
    m.tied_linear("lm_head", embed, s.head_bias);
  } else {
    m.linear("lm_head", s.hidden, s.vocabulary, s.head_bias);
  }
  return m.build();
}

}  // namespace shardplan
