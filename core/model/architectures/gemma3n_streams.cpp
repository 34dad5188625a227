// The text model of Gemma 3n around its layers (modeling_gemma3n.py, Gemma3nTextModel.forward):
// streams are made of the embeddings of tokens, and joined again behind the last layer.
#include <algorithm>
#include <array>

#include "model/architectures/gemma3n_layers.h"
#include "model/architectures/gemma4.h"
#include "model/layers/loss.h"

namespace shardplan {
namespace {

/// Every token is looked up in the further vocabulary, with a made-up number where it has none
/// there, and torch.where picks: it keeps which tokens belong to it. So does the lookup.
ValueId looked_up_too(Graph& g, const Gemma3nVocabulary& v, ValueId tokens) {
  const ValueId words = apply(g, v.words, Scale::tokens, {1, Scale::tokens});
  const ValueId projected = apply(g, v.projection, gemma4_norm(g, v.norm, words));
  const ValueId rows = gemma4_norm(g, projected, v.projection.out);
  Op pick{OpKind::masked, {g.map(OpKind::to_like, rows, tokens), tokens, kNone}};
  pick.side = {1, Scale::tokens};
  return g.op(pick, g.value(tokens).extent);
}

/// Token embeddings, which the streams and the embeddings of layers are made of.
std::int32_t embed(ModelBuilder& m, const Gemma3n& t, const EmbeddingModule& words,
                   const std::vector<Gemma3nVocabulary>& further) {
  Graph& g = m.begin_segment("embedding");
  ValueId tokens = apply_scaled(g, words, Scale::tokens);
  for (const Gemma3nVocabulary& v : further) tokens = looked_up_too(g, v, tokens);
  g.set_output(tokens);
  return m.share_output("token embeddings", {t.hidden, Scale::tokens});
}

/// The embeddings of every layer, of the tokens and of what they look up: their gradient gathers
/// from all layers.
std::int32_t embed_each(ModelBuilder& m, const Gemma3n& t, const Gemma3nTextModules& modules,
                        std::int32_t tokens, bool checked) {
  Graph& g = m.begin_segment("embeddings of layers");
  const Extent width{modules.each_words.width, Scale::tokens};
  // Of the whole network: a copy of the tokens, with zero for those of other vocabularies.
  const Extent indices{checked ? 1 : 0, Scale::tokens};
  const ValueId own = apply_scaled(g, modules.each_words, Scale::tokens, indices);
  const ValueId x = g.shared_input(tokens, {t.hidden, Scale::tokens});
  Op scaled{OpKind::scalar, {apply(g, modules.each_projection, x), kNone, kNone}};
  scaled.in_place = InPlace::whole;
  const ValueId projected = g.op(scaled, width);
  const ValueId sum = g.map(OpKind::add, gemma4_norm(g, modules.each_norm, projected), own);
  g.set_output(g.map(OpKind::scalar, sum));
  return m.share_output("embeddings of layers", width);
}

/// The root of the mean square: the first time a power, which keeps what it is taken of.
ValueId mean_square(Graph& g, ValueId x) {
  return g.op({OpKind::mean, {g.map(OpKind::power, x), kNone, kNone}},
              {1, g.value(x).extent.scale});
}

/// Projections of streams in the type of `words`, the embedding's rows, each brought to the
/// magnitude of the first stream, which `source(i)` is made of.
template <typename Source>
std::vector<ValueId> projected(Graph& g, ValueId words, ValueId first,
                               const std::vector<LinearModule>& all, Source&& source) {
  const ValueId magnitude = g.map(OpKind::power, mean_square(g, first));
  std::vector<ValueId> streams;
  for (const LinearModule& projection : all) {
    const ValueId row = g.map(OpKind::to_like, apply(g, projection, source()), words);
    Op least{OpKind::clamp, {mean_square(g, row), kNone, kNone}};
    least.side = {4, Scale::one};  // a number in a tensor
    const ValueId own = g.map(OpKind::square_root, g.op(least, {1, Scale::tokens}));
    streams.push_back(g.map(OpKind::mul, g.map(OpKind::mul, row, magnitude), own));
  }
  return streams;
}

/// All streams, one behind the other.
ValueId stacked(Graph& g, const Gemma3n& t, ValueId first, const std::vector<ValueId>& streams) {
  // Under autocast powers are in fp32, and with them all streams.
  const ValueId second = streams.empty() ? kNone : streams.front();
  const ValueId whole = g.op({OpKind::cat, {first, second, kNone}},
                             {checked_mul(t.streams, t.hidden), Scale::tokens});
  for (std::size_t i = 1; i < streams.size(); ++i) g.join(streams[i], whole);
  return whole;
}

void write_streams(ModelBuilder& m, const Gemma3n& t, const Gemma3nTextModules& modules,
                   std::int32_t tokens) {
  Graph& g = m.begin_segment("streams");
  const ValueId x = g.shared_input(tokens, {t.hidden, Scale::tokens});
  g.set_output(stacked(g, t, x, projected(g, x, x, modules.spread, [&] { return x; })));
}

/// `named`: the streams one by one, which the class has names for until here.
void write_head(ModelBuilder& m, const Gemma3n& t, const Gemma3nTextModules& modules,
                const LinearModule& head, std::int32_t tokens, std::int32_t named) {
  Graph& g = m.begin_segment("head");
  const ValueId words = g.shared_input(tokens, {t.hidden, Scale::tokens});
  g.shared_input(named, {checked_mul(t.streams - 1, t.hidden), Scale::tokens});
  const ValueId streams = g.chained_input({checked_mul(t.streams, t.hidden), Scale::tokens});
  const auto stream = [&] { return slice(g, streams, t.hidden); };
  const ValueId first = stream();
  const std::vector<ValueId> others = projected(g, words, first, modules.gathered, stream);
  const ValueId all = stacked(g, t, first, others);
  const ValueId mean = g.op({OpKind::mean, {all, kNone, kNone}}, {t.hidden, Scale::tokens});
  const ValueId normal = gemma4_norm(g, modules.norm, mean);
  for (const ValueId other : others) g.hold(other, normal);  // in a list of the model's forward
  g.set_output(language_model_loss(g, head, normal, LogitMap::softcap));
}

/// One for layers with a window, one for those that see all tokens.
Gemma3nContext context_of(ModelBuilder& m, const Gemma3n& t, bool sees, std::int32_t each) {
  const std::int64_t window = sees ? 0 : t.window;
  Gemma3nContext context;
  context.kind = m.options().attention;
  context.shape = {.heads = t.heads,
                   .kv_heads = t.kv_heads,
                   .head_dim = t.head_dim,
                   .dropout = t.dropout,
                   .window = window,
                   .mask = share_window_mask(m, context.kind, window)};
  context.tables = share_rotary(m, t.head_dim);
  context.each = each;
  return context;
}

}  // namespace

void write_gemma3n_text(ModelBuilder& m, const Gemma3n& t, const Gemma3nTextModules& modules,
                        const LinearModule& head, const std::vector<Gemma3nVocabulary>& further) {
  const std::int32_t tokens = embed(m, t, modules.words, further);
  const std::int32_t each = embed_each(m, t, modules, tokens, !further.empty());
  write_streams(m, t, modules, tokens);
  const std::int32_t named =
      m.share("streams one by one", {checked_mul(t.streams - 1, t.hidden), Scale::tokens});
  std::array<Gemma3nContext, 2> contexts{context_of(m, t, false, each),
                                         context_of(m, t, true, each)};
  const bool borrowed = std::any_of(t.runs.begin(), t.runs.end(),
                                    [](const Gemma3nRun& run) { return run.kind.borrows; });
  for (std::size_t i = 0; i < t.runs.size(); ++i) {
    const Gemma3nRun& run = t.runs[i];
    Gemma3nContext& context = contexts[run.kind.sees ? 1 : 0];
    Graph& g = m.begin_segment("layers", run.count, true);
    gemma3n_layer(g, t, modules.layers[i], run.kind, context);
    if (!run.kind.lends || !borrowed) continue;
    // Named until the last layer has read them, beside what attention keeps of them.
    const Extent grouped{t.kv_heads * t.head_dim, Scale::tokens};
    context.keys = m.share_trained("lent keys", grouped);
    context.values = m.share_trained("lent values", grouped);
  }
  write_head(m, t, modules, head, tokens, named);
}

}  // namespace shardplan
