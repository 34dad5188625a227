// Encoders that are counted: ELECTRA (models/electra), DeBERTa V2 and V3 (models/deberta_v2) and
// ModernBERT (models/modernbert).
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"

namespace shardplan {
namespace {

struct EncoderSize {
  std::int64_t hidden, ffn, layers, heads, vocab, positions;
};

EncoderSize read_encoder(const ModelConfig& c, const EncoderSize& d) {
  EncoderSize s{.hidden = c.count({"hidden_size"}, d.hidden),
                .ffn = c.count({"intermediate_size"}, d.ffn),
                .layers = c.count({"num_hidden_layers"}, d.layers),
                .heads = c.count({"num_attention_heads"}, d.heads),
                .vocab = c.count({"vocab_size"}, d.vocab),
                .positions = c.count({"max_position_embeddings"}, d.positions)};
  c.require_divisible("hidden_size", s.hidden, "num_attention_heads", s.heads);
  return s;
}

ModelFacts facts_of(const EncoderSize& s) {
  return {.hidden = s.hidden,
          .layers = s.layers,
          .vocabulary = s.vocab,
          .max_positions = s.positions,
          .attention_heads = s.heads,
          .key_value_heads = s.heads};
}

/// BERT's layers; `proj` is what follows "query" in the names.
void bert_layers(ModelBuilder& m, const EncoderSize& s, const std::string& list,
                 const std::string& proj) {
  m.begin_repeat(list, s.layers);
  for (const char* name : {"query", "key", "value"})
    m.linear(std::string("attention.self.") + name + proj, s.hidden, s.hidden, true);
  m.linear("attention.output.dense", s.hidden, s.hidden, true);
  m.layer_norm("attention.output.LayerNorm", s.hidden);
  m.linear("intermediate.dense", s.hidden, s.ffn, true);
  m.linear("output.dense", s.ffn, s.hidden, true);
  m.layer_norm("output.LayerNorm", s.hidden);
  m.end_repeat();
}

}  // namespace

Model build_electra(const ModelConfig& c, const BuildOptions& options) {
  const EncoderSize s = read_encoder(c, {256, 1024, 12, 4, 30522, 512});
  const std::int64_t width = c.count({"embedding_size"}, 128);
  ModelBuilder m(options);
  m.facts() = facts_of(s);
  const std::string at = "electra.embeddings.";
  const auto words = m.embedding(at + "word_embeddings", s.vocab, width);
  m.embedding(at + "position_embeddings", s.positions, width);
  m.embedding(at + "token_type_embeddings", c.count({"type_vocab_size"}, 2), width);
  m.layer_norm(at + "LayerNorm", width);
  if (width != s.hidden) m.linear("electra.embeddings_project", width, s.hidden, true);
  bert_layers(m, s, "electra.encoder.layer", "");
  switch (options.head.kind) {
    case HeadKind::none:
      break;
    case HeadKind::language_model:
      m.layer_norm("generator_predictions.LayerNorm", width);
      m.linear("generator_predictions.dense", s.hidden, width, true);
      if (c.flag("tie_word_embeddings", true)) {
        m.tied_linear("generator_lm_head", words, true);
      } else {
        m.linear("generator_lm_head", width, s.vocab, true);
      }
      break;
    case HeadKind::sequence:
      m.linear("classifier.dense", s.hidden, s.hidden, true);
      m.linear("classifier.out_proj", s.hidden, options.head.labels, true);
      break;
    case HeadKind::token:
      m.linear("classifier", s.hidden, options.head.labels, true);
      break;
  }
  return m.build();
}

Model build_deberta_v2(const ModelConfig& c, const BuildOptions& options) {
  const EncoderSize s = read_encoder(c, {1536, 6144, 24, 24, 128100, 512});
  if (c.optional_count({"conv_kernel_size"}) || c.optional_count({"embedding_size"}))
    c.fail("conv_kernel_size", "a convolution and embeddings of another width are not supported",
           "neither conv_kernel_size nor embedding_size");
  const bool relative = c.flag("relative_attention", false);
  if (relative && !c.flag("share_att_key", false))
    c.fail("share_att_key", "positions with projections of their own are not supported", "true");
  if (!c.flag("legacy", true)) c.fail("legacy", "the newer head is not supported", "true");
  ModelBuilder m(options);
  m.facts() = facts_of(s);
  const std::string at = "deberta.embeddings.";
  const auto words = m.embedding(at + "word_embeddings", s.vocab, s.hidden);
  if (c.flag("position_biased_input", true))
    m.embedding(at + "position_embeddings", s.positions, s.hidden);
  if (const std::int64_t types = c.count_or_zero("type_vocab_size", 0); types > 0)
    m.embedding(at + "token_type_embeddings", types, s.hidden);
  m.layer_norm(at + "LayerNorm", s.hidden);
  bert_layers(m, s, "deberta.encoder.layer", "_proj");
  if (relative) {
    const double buckets = c.number("position_buckets", -1);
    const double reach = c.number("max_relative_positions", -1);
    const auto distances = buckets > 0  ? static_cast<std::int64_t>(buckets)
                           : reach >= 1 ? static_cast<std::int64_t>(reach)
                                        : s.positions;
    m.embedding("deberta.encoder.rel_embeddings", 2 * distances, s.hidden);
  }
  if (c.text("norm_rel_ebd", "none").find("layer_norm") != std::string::npos)
    m.layer_norm("deberta.encoder.LayerNorm", s.hidden);
  switch (options.head.kind) {
    case HeadKind::none:
      break;
    case HeadKind::language_model:
      m.tensor("cls.predictions.bias", {s.vocab}, ParameterKind::bias);
      m.linear("cls.predictions.transform.dense", s.hidden, s.hidden, true);
      m.layer_norm("cls.predictions.transform.LayerNorm", s.hidden);
      if (!c.flag("tie_word_embeddings", true))
        c.fail("tie_word_embeddings", "a head of its own is not supported", "true");
      m.tied_linear("cls.predictions.decoder", words);
      break;
    case HeadKind::sequence:
      m.linear("pooler.dense", s.hidden, s.hidden, true);
      m.linear("classifier", s.hidden, options.head.labels, true);
      break;
    case HeadKind::token:
      m.linear("classifier", s.hidden, options.head.labels, true);
      break;
  }
  return m.build();
}

Model build_modernbert(const ModelConfig& c, const BuildOptions& options) {
  const EncoderSize s = read_encoder(c, {768, 1152, 22, 12, 50368, 8192});
  const bool norm_bias = c.flag("norm_bias", false), bias = c.flag("attention_bias", false);
  const bool mlp_bias = c.flag("mlp_bias", false);
  ModelBuilder m(options);
  m.facts() = facts_of(s);
  const auto words = m.embedding("model.embeddings.tok_embeddings", s.vocab, s.hidden);
  m.layer_norm("model.embeddings.norm", s.hidden, norm_bias);
  // The first layer takes the embeddings' norm for its own.
  register_layers(
      m, "model.layers", s.layers, [](std::int64_t i) { return i > 0; },
      [&](bool own) {
        if (own) m.layer_norm("attn_norm", s.hidden, norm_bias);
        m.linear("attn.Wqkv", s.hidden, 3 * s.hidden, bias);
        m.linear("attn.Wo", s.hidden, s.hidden, bias);
        m.layer_norm("mlp_norm", s.hidden, norm_bias);
        m.linear("mlp.Wi", s.hidden, 2 * s.ffn, mlp_bias);
        m.linear("mlp.Wo", s.ffn, s.hidden, mlp_bias);
      });
  m.layer_norm("model.final_norm", s.hidden, norm_bias);
  if (options.head.kind == HeadKind::none) return m.build();
  m.linear("head.dense", s.hidden, s.hidden, c.flag("classifier_bias", false));
  m.layer_norm("head.norm", s.hidden, norm_bias);
  if (options.head.kind != HeadKind::language_model) {
    m.linear("classifier", s.hidden, options.head.labels, true);
  } else if (c.flag("tie_word_embeddings", true)) {
    m.tied_linear("decoder", words, c.flag("decoder_bias", true));
  } else {
    m.linear("decoder", s.hidden, s.vocab, c.flag("decoder_bias", true));
  }
  return m.build();
}

}  // namespace shardplan
