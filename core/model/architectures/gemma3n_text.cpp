// The text model of Gemma 3n (models/gemma3n, model_type "gemma3n_text"): several streams of hidden
// states that every layer mixes (AltUp), a learned residual beside attention (LAuReL), an embedding
// for every layer, and keys and values that later layers take over. This file reads its
// configuration and registers its modules.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/architectures/gemma3n.h"
#include "model/layers/convolution.h"

namespace shardplan {
namespace {

/// One value for all layers, or a list with one for each.
std::vector<std::int64_t> widths_of(const ModelConfig& c, std::int64_t layers) {
  if (!c.is_list("intermediate_size"))
    return std::vector<std::int64_t>(static_cast<std::size_t>(layers),
                                     c.count({"intermediate_size"}, 16384));
  const std::vector<std::int64_t> listed = c.counts("intermediate_size");
  if (std::ssize(listed) != layers)
    c.fail("intermediate_size", "not one number for each layer", "one for each layer");
  return listed;
}

/// The class's own pattern: the first ten layers of more than ten.
std::vector<bool> sparse_layers(const ModelConfig& c, std::int64_t layers) {
  std::vector<bool> sparse;
  const std::vector<double> listed = c.numbers("activation_sparsity_pattern");
  if (!listed.empty() && std::ssize(listed) != layers)
    c.fail("activation_sparsity_pattern", "not one number for each layer", "one for each layer");
  for (std::int64_t i = 0; i < layers; ++i)
    sparse.push_back(listed.empty() ? layers > 10 && i < 10
                                    : listed[static_cast<std::size_t>(i)] > 0);
  return sparse;
}

std::vector<Gemma3nKind> kinds_of(const ModelConfig& c, std::int64_t layers) {
  const std::vector<bool> sliding =
      sliding_layers(c, layers, [](std::int64_t i) { return (i + 1) % 5 != 0; });
  const std::vector<bool> sparse = sparse_layers(c, layers);
  const std::vector<std::int64_t> widths = widths_of(c, layers);
  const std::int64_t first = layers - c.count_or_zero("num_kv_shared_layers", 15);
  std::vector<Gemma3nKind> kinds;
  for (std::size_t i = 0; i < widths.size(); ++i)
    kinds.push_back({.sees = !sliding[i],
                     .borrows = first > 0 && static_cast<std::int64_t>(i) >= first,
                     .sparse = sparse[i],
                     .ffn = widths[i]});
  if (first <= 0) return kinds;
  // The last layers of each kind before lend, even where nobody borrows.
  for (const bool sees : {false, true}) {
    const auto alike = [&](const Gemma3nKind& kind) { return kind.sees == sees; };
    const auto lent = kinds.begin() + static_cast<std::ptrdiff_t>(first);
    const auto last = std::find_if(std::make_reverse_iterator(lent), kinds.rend(), alike);
    if (last != kinds.rend())
      last->lends = true;
    else if (std::any_of(lent, kinds.end(), alike))
      c.fail("num_kv_shared_layers",
             fmt::format("no layer before the last {} is like those that take keys and values over",
                         layers - first),
             "fewer layers");
  }
  return kinds;
}

Gemma3nAltUp declare_altup(ModelBuilder& m, const Gemma3n& t) {
  Gemma3nAltUp a;
  a.scale = m.tensor("altup.correct_output_scale", {t.hidden}, ParameterKind::other);
  if (!t.scales) m.freeze(a.scale);  // there, and not read
  a.correction = m.linear("altup.correction_coefs", t.streams, t.streams);
  a.prediction = m.linear("altup.prediction_coefs", t.streams, checked_mul(t.streams, t.streams));
  a.router = m.linear("altup.modality_router", t.hidden, t.streams);
  a.norm = m.rms_norm("altup.router_norm", t.hidden);
  return a;
}

Gemma3nLayer declare_layer(ModelBuilder& m, const Gemma3n& t, const Gemma3nKind& kind) {
  const std::int64_t width = t.heads * t.head_dim, grouped = t.kv_heads * t.head_dim;
  Gemma3nLayer l;
  l.q = m.linear("self_attn.q_proj", t.hidden, width, t.bias);
  l.q_norm = m.rms_norm("self_attn.q_norm", t.head_dim);
  if (!kind.borrows) {
    l.k = m.linear("self_attn.k_proj", t.hidden, grouped, t.bias);
    l.v = m.linear("self_attn.v_proj", t.hidden, grouped, t.bias);
    l.k_norm = m.rms_norm("self_attn.k_norm", t.head_dim);
  }
  l.o = m.linear("self_attn.o_proj", width, t.hidden, t.bias);
  l.mlp = gated_mlp(m, "mlp", t.hidden, kind.ffn);
  l.before = m.rms_norm("input_layernorm", t.hidden);
  l.after = m.rms_norm("post_attention_layernorm", t.hidden);
  l.before_mlp = m.rms_norm("pre_feedforward_layernorm", t.hidden);
  l.after_mlp = m.rms_norm("post_feedforward_layernorm", t.hidden);
  l.altup = declare_altup(m, t);
  l.left = m.linear("laurel.linear_left", t.hidden, t.rank);
  l.right = m.linear("laurel.linear_right", t.rank, t.hidden);
  l.after_residual = m.rms_norm("laurel.post_laurel_norm", t.hidden);
  l.gate_each = m.linear("per_layer_input_gate", t.hidden, t.each);
  l.project_each = m.linear("per_layer_projection", t.each, t.hidden);
  l.after_each = m.rms_norm("post_per_layer_input_norm", t.hidden);
  return l;
}

}  // namespace

Gemma3n read_gemma3n(const ModelConfig& c, const BuildOptions& options) {
  Gemma3n t;
  t.hidden = c.count({"hidden_size"}, 2048);
  t.layers = c.count({"num_hidden_layers"}, 35);
  t.heads = c.count({"num_attention_heads"}, 8);
  t.kv_heads = c.count({"num_key_value_heads"}, 2);
  c.require_divisible("num_attention_heads", t.heads, "num_key_value_heads", t.kv_heads);
  t.head_dim = c.count({"head_dim"}, 256);
  t.vocab = c.count({"vocab_size"}, 262400);
  t.window = c.count({"sliding_window"}, 512);
  t.each = c.count({"hidden_size_per_layer_input"}, 256);
  t.each_vocab = c.count({"vocab_size_per_layer_input"}, 262144);
  t.streams = c.count({"altup_num_inputs"}, 4);
  t.rank = c.count({"laurel_rank"}, 64);
  t.max_positions = c.count_or_zero("max_position_embeddings", 32768);
  t.bias = c.flag("attention_bias", false);
  t.tied = c.flag("tie_word_embeddings", true);
  t.scales = c.flag("altup_correct_scale", true);
  t.dropout = c.number("attention_dropout", 0.0);
  t.activation = read_activation(c, "hidden_activation", "gelu_pytorch_tanh");
  const std::vector<Gemma3nKind> kinds = kinds_of(c, t.layers);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i == 0 || kinds[i] != t.runs.back().kind)
      t.runs.push_back({static_cast<std::int64_t>(i), 0, kinds[i]});
    ++t.runs.back().count;
  }
  if (options.counts_only) return t;
  require_training(c, options, "layers that share keys and values");
  if (t.streams < 2)
    c.fail("altup_num_inputs", "one stream of hidden states is not described", "2 or more");
  return t;
}

Gemma3nTextModules declare_gemma3n_text(ModelBuilder& m, const Gemma3n& t, const std::string& at) {
  Gemma3nTextModules all;
  all.words = m.embedding(at + "embed_tokens", t.vocab, t.hidden);
  for (const Gemma3nRun& run : t.runs) {
    m.begin_repeat(at + "layers", run.count, run.start);
    all.layers.push_back(declare_layer(m, t, run.kind));
    m.end_repeat();
  }
  all.norm = m.rms_norm(at + "norm", t.hidden);
  const std::int64_t width = checked_mul(t.layers, t.each);
  all.each_words = m.embedding(at + "embed_tokens_per_layer", t.each_vocab, width);
  m.set_like_blocks(true);
  all.each_projection = m.linear(at + "per_layer_model_projection", t.hidden, width);
  all.each_norm = m.rms_norm(at + "per_layer_projection_norm", t.each);
  for (const auto& [name, list] : {std::pair{"altup_projections.", &all.spread},
                                   std::pair{"altup_unembed_projections.", &all.gathered}})
    for (std::int64_t i = 0; i + 1 < t.streams; ++i)
      list->push_back(m.linear(at + name + std::to_string(i), t.hidden, t.hidden));
  m.set_like_blocks(false);
  return all;
}

ModelFacts gemma3n_facts(const Gemma3n& t) {
  return {.hidden = t.hidden,
          .layers = t.layers,
          .vocabulary = t.vocab,
          .max_positions = t.max_positions,
          .attention_heads = t.heads,
          .key_value_heads = t.kv_heads,
          .undivided = true,
          .lends = true};
}

Model build_gemma3n_text(const ModelConfig& c, const BuildOptions& options) {
  const Gemma3n t = read_gemma3n(c, options);
  ModelBuilder m(options);
  m.facts() = gemma3n_facts(t);
  const Gemma3nTextModules modules = declare_gemma3n_text(m, t, "model.");
  const auto head =
      t.tied ? m.tied_linear("lm_head", modules.words) : m.linear("lm_head", t.hidden, t.vocab);
  if (options.counts_only) return m.build();
  write_gemma3n_text(m, t, modules, head, {});
  return m.build();
}

}  // namespace shardplan
