#include <algorithm>

#include "model/architectures/images.h"
#include "model/architectures/mllama.h"
#include "model/architectures/towers.h"
#include "model/layers/attention.h"

namespace shardplan {
namespace {

constexpr const char* kEmbedding = "gated_positional_embedding";

/// Runs of layers that end at one that is read, or at the last.
std::vector<std::int64_t> run_ends(const MllamaTower& t) {
  std::vector<std::int64_t> ends;
  for (std::int64_t i = 0; i < t.layers; ++i)
    if (i + 1 == t.layers || std::find(t.read.begin(), t.read.end(), i) != t.read.end())
      ends.push_back(i + 1);
  return ends;
}

MllamaTower read_tower(const ModelConfig& v) {
  MllamaTower t;
  t.width = v.count({"hidden_size"}, 1280);
  t.ffn = v.count({"intermediate_size"}, 5120);
  t.heads = v.count({"attention_heads", "num_attention_heads"}, 16);
  t.layers = v.count({"num_hidden_layers"}, 32);
  t.global_layers = v.count({"num_global_layers"}, 8);
  t.tiles = v.count({"max_num_tiles"}, 4);
  t.forms = v.has("supported_aspect_ratios") ? v.length("supported_aspect_ratios") : 8;
  t.patches = patches_of(v, 448, 14);
  t.read = {3, 7, 15, 23, 30};
  if (v.is_list("intermediate_layers_indices")) t.read = v.counts("intermediate_layers_indices");
  t.activation = read_activation(v, "hidden_act", "gelu");
  v.require_divisible("hidden_size", t.width, "attention_heads", t.heads);
  return t;
}

MllamaTowerLayer tower_layer(ModelBuilder& m, const MllamaTower& t, bool gated) {
  MllamaTowerLayer l;
  if (gated) {
    l.attention_gate = m.tensor("gate_attn", {1}, ParameterKind::other);
    l.mlp_gate = m.tensor("gate_ffn", {1}, ParameterKind::other);
  }
  l.q = m.linear("self_attn.q_proj", t.width, t.width);
  l.k = m.linear("self_attn.k_proj", t.width, t.width);
  l.v = m.linear("self_attn.v_proj", t.width, t.width);
  l.out = m.linear("self_attn.o_proj", t.width, t.width);
  l.up = m.linear("mlp.fc1", t.width, t.ffn, true);
  l.down = m.linear("mlp.fc2", t.ffn, t.width, true);
  l.before = m.layer_norm("input_layernorm", t.width);
  l.after = m.layer_norm("post_attention_layernorm", t.width);
  return l;
}

MllamaTilePlaces tile_places(ModelBuilder& m, const MllamaTower& t, const std::string& name) {
  MllamaTilePlaces p;
  p.gate = m.tensor(name + ".gate", {1}, ParameterKind::other);
  p.table = m.embedding(name + ".embedding", t.forms + 1, checked_mul(t.tiles, t.width));
  return p;
}

Extent all_rows(const MllamaTower& t) {
  return {checked_mul(t.width, checked_mul(t.tiles, t.rows())), Scale::images};
}

ValueId opened(Graph& g, const ModelBuilder& m, ParameterId gate) {
  return g.map(OpKind::tanh, parameter_value(g, m, gate, 1));
}

/// Rows of a table, one for each image, by numbers that the batch brings.
ValueId picked(Graph& g, const EmbeddingModule& table) {
  Op op{OpKind::embedding};
  op.module = table.module;
  op.weight = table.weight;
  return g.op(op, {table.width, Scale::images});
}

ValueId add_tile_places(Graph& g, const ModelBuilder& m, const MllamaTilePlaces& p, ValueId x) {
  const ValueId rows = picked(g, p.table);
  return g.map(OpKind::add, x, g.map(OpKind::mul, rows, opened(g, m, p.gate)));
}

void write_embedding(ModelBuilder& m, const MllamaTower& t) {
  Graph& g = m.begin_segment("tower embedding");
  const std::int64_t patches = checked_mul(t.tiles, t.patches);
  Op conv{OpKind::linear, {g.op({OpKind::batch}, {t.values, Scale::images}), kNone, kNone}};
  conv.module = m.owner(t.patch);
  conv.weight = t.patch;
  conv.work = {checked_mul(t.values, t.width), Scale::images};
  const ValueId tiles = g.op(conv, {checked_mul(patches, t.width), Scale::images});
  const ValueId placed = add_tile_places(g, m, t.before, tiles);
  const ValueId token = parameter_value(g, m, t.class_token, t.width);
  const ValueId rows = g.op({OpKind::cat, {token, placed, kNone}}, all_rows(t));
  const ValueId closed = g.map(OpKind::scalar, opened(g, m, t.gate));
  const ValueId places =
      g.map(OpKind::mul, parameter_value(g, m, t.places, checked_mul(t.rows(), t.width)), closed);
  const ValueId in_tiles = g.map(OpKind::add, rows, places);
  const ValueId of_form = g.map(OpKind::mul, picked(g, t.tile_places), opened(g, m, t.gate));
  const ValueId normal = layer_norm(g, t.first, g.map(OpKind::add, in_tiles, of_form));
  const Extent padded{t.width, Scale::patches};
  g.set_output(t.padded() == t.rows() ? g.view(normal, padded)
                                      : g.op({OpKind::copy, {normal, kNone, kNone}}, padded));
}

/// What follows the attention and the MLP: times the gate, where there is one, and added.
ValueId joined_to(Graph& g, const ModelBuilder& m, ParameterId gate, ValueId stream, ValueId x) {
  const ValueId part = gate == kNone ? x : g.map(OpKind::mul, x, opened(g, m, gate));
  return g.map(OpKind::add, stream, part);
}

void write_layers(ModelBuilder& m, const MllamaTower& t, const MllamaTowerLayer& l,
                  std::int64_t count, std::int32_t mask) {
  // No GradientCheckpointingLayer: activation checkpointing leaves them as they are.
  Graph& g = m.begin_segment("tower layers", count);
  const ValueId x = g.chained_input({t.width, Scale::patches});
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.heads,
                             .head_dim = t.width / t.heads,
                             .queries = Scale::patches,
                             .keys = Scale::patches,
                             .causal = false};
  const ValueId normal = layer_norm(g, l.before, x);
  const ValueId q = apply(g, l.q, normal), k = apply(g, l.k, normal), v = apply(g, l.v, normal);
  const ValueId bias = g.shared_input(mask, {1, Scale::patch_scores});
  const AttentionKind kind = m.options().attention;
  const ValueId mixed = kind == AttentionKind::sdpa ? masked_attention(g, shape, q, k, v, bias)
                                                    : attention(g, kind, shape, q, k, v, bias);
  const ValueId middle = joined_to(g, m, l.attention_gate, x, apply(g, l.out, mixed));
  const ValueId inner = activate(g, t.activation, apply(g, l.up, layer_norm(g, l.after, middle)));
  g.set_output(joined_to(g, m, l.mlp_gate, middle, apply(g, l.down, inner)));
}

Extent read_rows(const MllamaTower& t) {
  return {checked_mul(std::ssize(t.read), t.width), Scale::patches};
}

/// Without the rows that fill tiles up: a copy, where there are some.
ValueId without_padding(Graph& g, const MllamaTower& t, ValueId x, std::int64_t layers) {
  const Extent rows{checked_mul(layers, all_rows(t).per), Scale::images};
  return t.padded() == t.rows() ? g.view(x, rows) : g.op({OpKind::copy, {x, kNone, kNone}}, rows);
}

/// The last rows beside those of the layers that are read, stacked before they are cut. `read` are
/// those layers' rows, which their readers have kept since.
void write_features(ModelBuilder& m, const MllamaTower& t, std::int32_t read) {
  Graph& g = m.begin_segment("tower features");
  const std::int64_t layers = std::ssize(t.read);
  const ValueId last = without_padding(g, t, g.chained_input({t.width, Scale::patches}), 1);
  const ValueId stacked = g.map(OpKind::copy, g.shared_input(read, read_rows(t)));
  const ValueId cut = without_padding(g, t, stacked, layers);
  g.set_output(g.op({OpKind::cat, {last, cut, kNone}},
                    {checked_mul(layers + 1, all_rows(t).per), Scale::images}));
}

}  // namespace

MllamaTower mllama_tower(ModelBuilder& m, const std::string& at, const ModelConfig& v) {
  MllamaTower t = read_tower(v);
  const std::int64_t patch = side_of(v, "patch_size", 14), channels = v.count({"num_channels"}, 3);
  t.values = checked_mul(checked_mul(t.tiles, t.patches),
                         checked_mul(channels, checked_mul(patch, patch)));
  t.class_token = m.tensor(at + "class_embedding", {t.width}, ParameterKind::other);
  t.patch = m.tensor(at + "patch_embedding.weight", {t.width, channels, patch, patch},
                     ParameterKind::linear);
  const std::string places = at + kEmbedding;
  t.gate = m.tensor(places + ".gate", {1}, ParameterKind::other);
  t.places = m.tensor(places + ".embedding", {t.rows(), t.width}, ParameterKind::embedding);
  t.tile_places = m.embedding(places + ".tile_embedding", t.forms + 1,
                              checked_mul(checked_mul(t.tiles, t.rows()), t.width));
  t.before = tile_places(m, t, at + "pre_tile_positional_embedding");
  t.after = tile_places(m, t, at + "post_tile_positional_embedding");
  t.first = m.layer_norm(at + "layernorm_pre", t.width);
  t.last = m.layer_norm(at + "layernorm_post", t.width);
  std::int64_t start = 0;
  for (const std::int64_t end : run_ends(t)) {
    m.begin_repeat(at + "transformer.layers", end - start, start);
    t.runs.push_back(tower_layer(m, t, false));
    m.end_repeat();
    start = end;
  }
  m.begin_repeat(at + "global_transformer.layers", t.global_layers);
  t.global = tower_layer(m, t, true);
  m.end_repeat();
  return t;
}

void write_mllama_tower(ModelBuilder& m, const MllamaTower& t) {
  write_embedding(m, t);
  const std::int32_t mask = m.share("tile mask", {1, Scale::patch_scores});
  const std::vector<std::int64_t> ends = run_ends(t);
  for (std::size_t i = 0; i < ends.size(); ++i)
    write_layers(m, t, t.runs[i], ends[i] - (i == 0 ? 0 : ends[i - 1]), mask);
  // Made here at once, while the layers make them one after the other.
  const bool trains = tower_trains(m.options());
  const std::int32_t read = trains ? m.share_trained("layers of the tower", read_rows(t))
                                   : m.share("layers of the tower", read_rows(t));
  Graph& g = m.begin_segment("tower middle");
  const ValueId normal = layer_norm(g, t.last, g.chained_input({t.width, Scale::patches}));
  g.set_output(add_tile_places(g, m, t.after, normal));
  write_layers(m, t, t.global, t.global_layers, mask);
  write_features(m, t, read);
}

}  // namespace shardplan
