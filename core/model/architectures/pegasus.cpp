// Pegasus (models/pegasus), ForConditionalGeneration: BART with norms before each sublayer and
// places that never train.
#include "model/architectures/architectures.h"
#include "model/architectures/bart.h"

namespace shardplan {

Model build_pegasus(const ModelConfig& c, const BuildOptions& options) {
  return build_bart_like(c, options, {.embedding_norm = false, .places = BartPlaces::sinusoidal});
}

}  // namespace shardplan
