// BERT (models/bert), RoBERTa (models/roberta), XLM-RoBERTa and CamemBERT, which are RoBERTa: the
// class that "architectures" names, or ForMaskedLM.
#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "model/architectures/architectures.h"
#include "model/layers/encoder_layer.h"
#include "model/layers/heads.h"

namespace shardplan {
namespace {

enum class Task : std::uint8_t { base, masked, pretraining, sequence, token, question };

struct Bert {
  bool roberta = false, head_first = false;
  Task task = Task::masked;
  std::string prefix;  ///< "bert.", "roberta." or nothing
  std::int64_t hidden, ffn, layers, heads, vocab, positions, types, labels;
  double hidden_dropout, attention_dropout, classifier_dropout;
  Activation activation;
};

/// What a family of BERT's kind differs in.
struct BertFamily {
  std::string_view stem;  ///< of its classes
  bool roberta = false;
  bool head_first = false;  ///< the vocabulary's head is registered before the body
  std::int64_t vocabulary = 30522;
};

Task read_task(const ModelConfig& c, const BertFamily& family) {
  const bool roberta = family.roberta;
  static constexpr std::array<std::pair<std::string_view, Task>, 6> kTasks{{
      {"Model", Task::base},
      {"ForMaskedLM", Task::masked},
      {"ForPreTraining", Task::pretraining},
      {"ForSequenceClassification", Task::sequence},
      {"ForTokenClassification", Task::token},
      {"ForQuestionAnswering", Task::question},
  }};
  const std::vector<std::string> named = c.texts("architectures");
  if (named.empty()) return Task::masked;
  std::string known;
  for (const auto& [suffix, task] : kTasks) {
    if (roberta && task == Task::pretraining) continue;
    const std::string name = std::string(family.stem) + std::string(suffix);
    if (named.front() == name) return task;
    known += (known.empty() ? "" : ", ") + name;
  }
  c.fail("architectures", "unsupported class '" + named.front() + "'", known);
}

Bert read(const ModelConfig& c, const BertFamily& family) {
  const bool roberta = family.roberta;
  Bert b{};
  b.roberta = roberta;
  b.task = read_task(c, family);
  b.head_first = family.head_first && b.task == Task::masked;
  if (b.task != Task::base) b.prefix = roberta ? "roberta." : "bert.";
  b.hidden = c.count({"hidden_size"}, 768);
  b.ffn = c.count({"intermediate_size"}, 3072);
  b.layers = c.count({"num_hidden_layers"}, 12);
  b.heads = c.count({"num_attention_heads"}, 12);
  b.vocab = c.count({"vocab_size"}, family.vocabulary);
  b.positions = c.count({"max_position_embeddings"}, 512);
  b.types = c.count({"type_vocab_size"}, 2);
  c.require_divisible("hidden_size", b.hidden, "num_attention_heads", b.heads);
  if (c.flag("add_cross_attention", false))
    c.fail("add_cross_attention", "cross attention in this family is not supported", "false");
  const std::int64_t named_labels = c.entries("id2label");
  b.labels = c.count({"num_labels"}, named_labels > 0 ? named_labels : 2);
  b.hidden_dropout = c.number("hidden_dropout_prob", 0.1);
  b.attention_dropout = c.number("attention_probs_dropout_prob", 0.1);
  b.classifier_dropout = c.number("classifier_dropout", b.hidden_dropout);
  b.activation = read_activation(c, "hidden_act", "gelu");
  return b;
}

struct Body {
  EmbeddingModule words, positions, types;
  NormModule embedding_norm;
  EncoderLayer layer;
};

EncoderShape shape_of(const Bert& b) {
  return {.hidden = b.hidden,
          .ffn = b.ffn,
          .heads = b.heads,
          .hidden_dropout = b.hidden_dropout,
          .attention_dropout = b.attention_dropout,
          .activation = b.activation};
}

void declare_body(ModelBuilder& m, const Bert& b, Body& y) {
  const std::string at = b.prefix + "embeddings.";
  if (y.words.weight == kNone) {
    y.words = m.embedding(at + "word_embeddings", b.vocab, b.hidden);
  } else {  // the head's, which came first
    y.words.module = m.tied_linear(at + "word_embeddings", y.words).module;
  }
  if (!b.roberta) y.positions = m.embedding(at + "position_embeddings", b.positions, b.hidden);
  y.types = m.embedding(at + "token_type_embeddings", b.types, b.hidden);
  y.embedding_norm = m.layer_norm(at + "LayerNorm", b.hidden);
  if (b.roberta) y.positions = m.embedding(at + "position_embeddings", b.positions, b.hidden);
  m.begin_repeat(b.prefix + "encoder.layer", b.layers);
  y.layer = encoder_layer(m, shape_of(b));
  m.end_repeat();
}

void embed(Graph& g, const Bert& b, const Body& y) {
  const ValueId words = apply(g, y.words, Scale::tokens);
  const ValueId types = apply(g, y.types, Scale::tokens);
  const ValueId sum = g.map(OpKind::add, words, types);
  // RoBERTa counts positions from the token ids, for each sequence of the batch.
  const ValueId places = apply(g, y.positions, b.roberta ? Scale::tokens : Scale::sequence);
  const ValueId normal = layer_norm(g, y.embedding_norm, g.map(OpKind::add, sum, places));
  const ValueId out = dropout(g, normal, b.hidden_dropout);
  for (const ValueId local : {words, types, places}) g.hold(local, out);
  g.set_output(out);
}

struct Head {
  LinearModule pooler, dense, decoder, relation, classifier, projection;
  NormModule norm;
};

/// The vocabulary's head: a bias of its own first, then dense, norm and the tied decoder.
void declare_vocabulary(ModelBuilder& m, const ModelConfig& c, const Bert& b, Body& y, Head& h) {
  const std::string at = b.roberta ? "lm_head." : "cls.predictions.";
  const std::string inner = b.roberta ? at : at + "transform.";
  const ParameterId bias = m.tensor(at + "bias", {b.vocab}, ParameterKind::bias);
  m.set_like_blocks(true);  // peft's word for all linears means it too
  h.dense = m.linear(inner + "dense", b.hidden, b.hidden, true);
  m.set_like_blocks(false);
  h.norm = m.layer_norm(inner + (b.roberta ? "layer_norm" : "LayerNorm"), b.hidden);
  if (!c.flag("tie_word_embeddings", true)) {
    h.decoder = m.linear(at + "decoder", b.hidden, b.vocab, true);
    return;
  }
  if (b.head_first) {
    y.words = m.embedding(at + "decoder", b.vocab, b.hidden);
    h.decoder.module = y.words.module;
    h.decoder.weight = y.words.weight;
    h.decoder.in = b.hidden;
    h.decoder.out = b.vocab;
  } else {
    h.decoder = m.tied_linear(at + "decoder", y.words);
  }
  h.decoder.bias = bias;
  m.tie(h.decoder.module, bias);
}

void declare_head(ModelBuilder& m, const ModelConfig& c, const Bert& b, Body& y, Head& h) {
  const bool pooled = b.task == Task::base || b.task == Task::pretraining ||
                      (b.task == Task::sequence && !b.roberta);
  if (pooled) h.pooler = m.linear(b.prefix + "pooler.dense", b.hidden, b.hidden, true);
  switch (b.task) {
    case Task::base:
      break;
    case Task::masked:
    case Task::pretraining:
      declare_vocabulary(m, c, b, y, h);
      if (b.task == Task::pretraining)
        h.relation = m.linear("cls.seq_relationship", b.hidden, 2, true);
      break;
    case Task::sequence:
      if (b.roberta) {
        h.classifier = m.linear("classifier.dense", b.hidden, b.hidden, true);
        h.projection = m.linear("classifier.out_proj", b.hidden, b.labels, true);
      } else {
        h.classifier = m.linear("classifier", b.hidden, b.labels, true);
      }
      break;
    case Task::token:
      h.classifier = m.linear("classifier", b.hidden, b.labels, true);
      break;
    case Task::question:
      h.classifier = m.linear("qa_outputs", b.hidden, b.labels, true);
      break;
  }
}

ValueId pool(Graph& g, const LinearModule& dense, ValueId x) {
  return g.map(OpKind::tanh, apply(g, dense, first_token(g, x)));
}

ValueId vocabulary_loss(Graph& g, const Bert& b, const Head& h, ValueId x) {
  const Activation activation = b.roberta ? Activation::gelu : b.activation;
  const ValueId inner = layer_norm(g, h.norm, activate(g, activation, apply(g, h.dense, x)));
  g.begin_logits();
  return cross_entropy(g, apply(g, h.decoder, inner));
}

ValueId loss(Graph& g, const Bert& b, const Head& h, ValueId x) {
  switch (b.task) {
    case Task::base:
      return mean_loss(g, pool(g, h.pooler, x));
    case Task::masked:
      return vocabulary_loss(g, b, h, x);
    case Task::pretraining: {
      const ValueId relation = cross_entropy(g, apply(g, h.relation, pool(g, h.pooler, x)));
      return g.map(OpKind::add, vocabulary_loss(g, b, h, x), relation);
    }
    case Task::sequence: {
      if (!b.roberta) {
        const ValueId pooled = dropout(g, pool(g, h.pooler, x), b.classifier_dropout);
        return cross_entropy(g, apply(g, h.classifier, pooled));
      }
      const ValueId first = dropout(g, first_token(g, x), b.classifier_dropout);
      const ValueId inner = g.map(OpKind::tanh, apply(g, h.classifier, first));
      return cross_entropy(g, apply(g, h.projection, dropout(g, inner, b.classifier_dropout)));
    }
    case Task::token:
      return cross_entropy(g, apply(g, h.classifier, dropout(g, x, b.classifier_dropout)));
    case Task::question:
      break;
  }
  return cross_entropy(g, apply(g, h.classifier, x));
}

Model build_bert_like(const ModelConfig& c, const BuildOptions& options, const BertFamily& family) {
  const Bert b = read(c, family);
  ModelBuilder m(options);
  m.facts() = {.hidden = b.hidden,
               .layers = b.layers,
               .vocabulary = b.vocab,
               .max_positions = b.positions,
               .attention_heads = b.heads,
               .key_value_heads = b.heads,
               .embeds_in_module = true};
  if (!c.has("architectures"))
    m.facts().assumed.push_back("class ForMaskedLM: the configuration names no architectures");
  if (b.task == Task::base)
    m.facts().assumed.push_back("loss: the mean of the pooled output, the class has none");
  Body body;
  Head head;
  if (b.head_first) declare_vocabulary(m, c, b, body, head);
  declare_body(m, b, body);
  if (!b.head_first) declare_head(m, c, b, body, head);
  embed(m.begin_segment("embedding"), b, body);
  Graph& l = m.begin_segment("layers", b.layers, true);
  l.set_output(apply(l, body.layer, shape_of(b), options.attention,
                     l.chained_input({b.hidden, Scale::tokens})));
  Graph& g = m.begin_segment("head");
  g.set_output(loss(g, b, head, g.chained_input({b.hidden, Scale::tokens})));
  return m.build();
}

}  // namespace

Model build_bert(const ModelConfig& c, const BuildOptions& options) {
  return build_bert_like(c, options, {.stem = "Bert"});
}

Model build_roberta(const ModelConfig& c, const BuildOptions& options) {
  return build_bert_like(c, options, {.stem = "Roberta", .roberta = true, .vocabulary = 50265});
}

Model build_xlm_roberta(const ModelConfig& c, const BuildOptions& options) {
  return build_bert_like(c, options, {.stem = "XLMRoberta", .roberta = true, .head_first = true});
}

Model build_camembert(const ModelConfig& c, const BuildOptions& options) {
  return build_bert_like(c, options, {.stem = "Camembert", .roberta = true, .head_first = true});
}

}  // namespace shardplan
