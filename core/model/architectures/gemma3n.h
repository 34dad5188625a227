// What the parts of Gemma 3n (models/gemma3n) share: its text model, which the whole network has
// too, and its tower of images.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/builder.h"
#include "model/config.h"
#include "model/layers/mlp.h"

namespace shardplan {

/// Which layers are alike.
struct Gemma3nKind {
  bool sees = false;     ///< all tokens, not a window
  bool borrows = false;  ///< keys and values of an earlier layer
  bool lends = false;    ///< its own to later ones, or would if there were any that borrow
  bool sparse = false;   ///< of its MLP's gates the largest are left
  std::int64_t ffn = 0;
  bool operator==(const Gemma3nKind&) const = default;
};

struct Gemma3nRun {
  std::int64_t start = 0, count = 0;
  Gemma3nKind kind;
};

struct Gemma3n {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, window = 0;
  std::int64_t each = 0, each_vocab = 0;  ///< of the embedding for every layer
  std::int64_t streams = 0;               ///< of hidden states (AltUp)
  std::int64_t rank = 0;                  ///< of the learned residual (LAuReL)
  std::int64_t max_positions = 0;
  bool bias = false, tied = true, scales = true;
  double dropout = 0;
  Activation activation = Activation::gelu;
  std::vector<Gemma3nRun> runs;
};

/// The streams of hidden states, mixed by numbers that a router makes of one of them
/// (Gemma3nTextAltUp).
struct Gemma3nAltUp {
  ParameterId scale = kNone;
  LinearModule correction, prediction, router;
  NormModule norm;
};

struct Gemma3nLayer {
  LinearModule q, o;
  std::optional<LinearModule> k, v;
  NormModule q_norm, k_norm;
  GatedMlp mlp;
  NormModule before, after, before_mlp, after_mlp, after_each, after_residual;
  Gemma3nAltUp altup;
  LinearModule left, right;  ///< of the learned residual
  LinearModule gate_each, project_each;
};

struct Gemma3nTextModules {
  EmbeddingModule words, each_words;
  LinearModule each_projection;
  NormModule each_norm, norm;
  std::vector<Gemma3nLayer> layers;            ///< one of each run
  std::vector<LinearModule> spread, gathered;  ///< streams are made of the first, and joined again
};

/// Tokens of a further vocabulary, in front of which a tower's rows are projected too: every token
/// is looked up in it, whatever it is (Gemma3nMultimodalEmbedder).
struct Gemma3nVocabulary {
  EmbeddingModule words;
  NormModule norm;
  LinearModule projection;
};

/// Throws where the configuration asks for what is not described.
Gemma3n read_gemma3n(const ModelConfig& config, const BuildOptions& options);

/// Registers the text model without its head; `at`: before each name.
Gemma3nTextModules declare_gemma3n_text(ModelBuilder& m, const Gemma3n& t, const std::string& at);

ModelFacts gemma3n_facts(const Gemma3n& t);

/// The segments of the text model, over tokens that are looked up in `further` vocabularies too.
void write_gemma3n_text(ModelBuilder& m, const Gemma3n& t, const Gemma3nTextModules& modules,
                        const LinearModule& head, const std::vector<Gemma3nVocabulary>& further);

/// Registers the tower of images, which timm builds (mobilenetv5_300m_enc).
void declare_gemma3n_tower(ModelBuilder& m, const std::string& at, const ModelConfig& vision);

}  // namespace shardplan
