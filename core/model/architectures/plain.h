// Models that no architecture describes: lists of tensors, multi-layer perceptrons, and a decoder
// of a given size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/builder.h"

namespace shardplan {

struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Parameters without a graph: states and traffic are exact, activations and time are unknown.
/// `file` and `key` say in errors where the list stands.
Model tensor_list(const std::vector<NamedTensor>& tensors, const BuildOptions& options,
                  const std::string& file, const std::string& key);

/// Linear layers with bias of the given widths, ReLU between them, cross-entropy over the last one;
/// a token is one sample.
Model perceptron(const std::vector<std::int64_t>& widths, const BuildOptions& options,
                 const std::string& file, const std::string& key);

/// "7B", "1.3b", "350M": the number of parameters, or nullopt when `text` is not such a size.
std::optional<double> parse_model_size(std::string_view text);

/// A dense decoder in the shape of Llama with about as many parameters as `size` says, every choice
/// in facts.assumed; nullopt when `size` is not a size.
std::optional<Model> generic_decoder(std::string_view size, const BuildOptions& options,
                                     const std::string& file, const std::string& key);

}  // namespace shardplan
