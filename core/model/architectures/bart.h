// BART and its descendants: encoder and decoder of the same kind of layers, which differ in the
// norms around them and in the places of tokens.
#pragma once

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

enum class BartPlaces : std::uint8_t {
  learned,     ///< a table, looked up from index 2 on
  sinusoidal,  ///< a table that never trains (Pegasus)
  computed,    ///< a buffer, of which a row for each token is copied (M2M-100)
};

struct BartDescription {
  bool norm_first = true;
  bool embedding_norm = true;  ///< of the embeddings, before the layers
  bool last_norm = true;       ///< behind the layers
  bool logits_bias = true;     ///< a buffer that is added to the logits
  BartPlaces places = BartPlaces::learned;
  std::int64_t vocab = 50265, positions = 1024;
  double attention_dropout = 0;
  std::string_view activation = "gelu";
};

Model build_bart_like(const ModelConfig& config, const BuildOptions& options,
                      const BartDescription& description);

}  // namespace shardplan
