// What a published checkpoint stores its weights in, which engines load as they are.
#pragma once

#include <optional>
#include <string>

#include "formats/stored_format.h"
#include "json/document.h"

namespace shardplan {

struct StoredWeights {
  Quantization format = Quantization::none;
  std::string method;  ///< as the configuration calls it
  bool known = true;   ///< false: no format of ours, and 16 bits are taken
};

/// By quantization_config of a config.json (transformers, utils/quantization_config.py,
/// QuantizationMethod; vLLM reads the same). Nothing where there is none: 16 bits.
std::optional<StoredWeights> stored_weights(const Json& config);

}  // namespace shardplan
