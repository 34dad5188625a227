// OLMo 3 (models/olmo3): OLMo 2 with a window in three of four layers and tables for each kind.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_olmo3(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_olmo2(config);
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  d.sliding = sliding_layers(config, d.layers, [](std::int64_t i) { return (i + 1) % 4 != 0; });
  d.tables_by_window = true;
  return build_decoder(d, options);
}

}  // namespace shardplan
