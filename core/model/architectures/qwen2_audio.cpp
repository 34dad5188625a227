// Qwen 2-Audio (models/qwen2_audio): Whisper's encoder of 30 seconds of sound, whose rows are
// joined in pairs, one linear and a text model, whose head is never its embedding. To a job a sound
// is what an image is to other networks.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/layers/convolution.h"
#include "model/layers/sequence_layer.h"

#include <fmt/format.h>

namespace shardplan {
namespace {

struct AudioTower {
  TimeConvolution conv1, conv2;
  EmbeddingModule places;
  SequenceLayer layer;
  NormModule norm;
  LinearModule projector;
  std::int64_t width = 0, bins = 0, rows = 0, layers = 0;
  std::int64_t tokens = 0;  ///< that are taken of the pairs
};

AudioTower declare_audio_tower(ModelBuilder& m, const ModelConfig& a) {
  AudioTower t;
  t.width = a.count({"d_model"}, 1280);
  t.bins = a.count({"num_mel_bins"}, 128);
  t.rows = a.count({"max_source_positions"}, 1500);
  t.layers = a.count({"encoder_layers"}, 32);
  const SequenceShape shape = read_sequence_shape(
      a, "encoder", t.width,
      {.heads = 20, .ffn = 5120, .norm_first = true, .key_bias = false, .heads_first = true});
  const std::string at = "model.audio_tower.";
  t.conv1 = time_convolution(m, at + "conv1", t.bins, t.width);
  t.conv2 = time_convolution(m, at + "conv2", t.width, t.width);
  t.places = m.embedding(at + "embed_positions", t.rows, t.width);
  m.freeze(t.places.weight);
  m.begin_repeat(at + "layers", t.layers);
  t.layer = sequence_layer(m, shape, false);
  m.end_repeat();
  t.norm = m.layer_norm(at + "layer_norm", t.width);
  return t;
}

void write_tower(ModelBuilder& m, const AudioTower& t) {
  Graph& e = m.begin_segment("tower embedding");
  const ValueId mel = e.op({OpKind::batch}, {2 * t.bins, Scale::patches});
  const ValueId frames =
      convolve(e, t.conv2, 1, Scale::patches, convolve(e, t.conv1, 2, Scale::patches, mel));
  const ValueId places = parameter_value(e, m, t.places.weight, t.rows * t.width);
  e.set_output(dropout(e, e.map(OpKind::add, frames, places), t.layer.shape.dropout));
  // A mask where sounds were filled up: booleans to sdpa, a sum to eager attention.
  const bool eager = m.options().attention == AttentionKind::eager;
  const std::int64_t parts = eager ? 1 : 2;
  const std::int32_t mask =
      t.layer.shape.padded ? m.share("padding mask", {1, Scale::patch_scores, parts}) : kNone;
  Graph& g = m.begin_segment("tower layers", t.layers, true);
  const ValueId x = g.chained_input({t.width, Scale::patches});
  if (mask != kNone && !eager) g.shared_input(mask, {1, Scale::patch_scores, parts});
  g.set_output(apply(g, t.layer, m.options().attention, x, kNone, eager ? mask : kNone));
}

/// Pairs of rows, of which those of the sound are picked by a mask behind the projector.
void write_projector(ModelBuilder& m, const AudioTower& t) {
  const std::int64_t pairs = t.rows / 2, hidden = t.projector.out;
  Graph& n = m.begin_segment("tower norm");
  const ValueId x = n.chained_input({t.width, Scale::patches});
  const ValueId pooled =
      n.op({OpKind::pool, {x, kNone, kNone}}, {checked_mul(pairs, t.width), Scale::images});
  n.set_output(layer_norm(n, t.norm, pooled));
  Graph& g = m.begin_segment("projector");
  const ValueId rows =
      apply(g, t.projector, g.chained_input({checked_mul(pairs, t.width), Scale::images}));
  Op pick{OpKind::masked, {rows, kNone, kNone}};
  pick.side = {pairs, Scale::images};
  g.set_output(g.op(pick, {checked_mul(t.tokens, hidden), Scale::images}));
}

std::int64_t tokens_of(const ModelConfig& c, const BuildOptions& options, std::int64_t rows) {
  const std::int64_t most = rows / 2, said = options.images.tokens;
  if (said > most)
    throw InputError(
        {.file = c.file(),
         .key = "workload.image_tokens",
         .message = fmt::format("found {}, but a sound has {} tokens at most", said, most),
         .expected = fmt::format("{} (30 seconds), or less", most)});
  return said > 0 ? said : most;
}

}  // namespace

Model build_qwen2_audio(const ModelConfig& c, const BuildOptions& options) {
  if (c.entries("text_config") == 0) c.fail("text_config", "missing", "the text model's keys");
  BuildOptions text_options = options;
  text_options.picks_labels = true;
  Model text = text_inside(c, text_options, "qwen2", false);
  rename_prefix(text, "model.", "model.language_model.");
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  AudioTower t = declare_audio_tower(m, c.inner("audio_config"));
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  t.projector = m.linear("model.multi_modal_projector.linear", t.width, text.facts.hidden, true);
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  t.tokens = tokens_of(c, options, t.rows);
  t.layer.shape.padded = t.tokens < t.rows / 2;
  if (options.images.tokens == 0)
    text.facts.assumed.push_back(fmt::format("{} tokens for a sound: 30 seconds", t.tokens));
  write_tower(m, t);
  write_projector(m, t);
  return with_images(
      m.build(), std::move(text),
      {.tokens = t.tokens, .patches = t.rows, .values = checked_mul(2 * t.bins, t.rows)});
}

}  // namespace shardplan
