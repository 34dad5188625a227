// M2M-100 and NLLB (models/m2m_100), ForConditionalGeneration: BART with norms before each
// sublayer and places in a buffer.
#include "model/architectures/architectures.h"
#include "model/architectures/bart.h"

namespace shardplan {

Model build_m2m_100(const ModelConfig& c, const BuildOptions& options) {
  return build_bart_like(c, options,
                         {.embedding_norm = false,
                          .logits_bias = false,
                          .places = BartPlaces::computed,
                          .vocab = 128112,
                          .attention_dropout = 0.1,
                          .activation = "relu"});
}

}  // namespace shardplan
