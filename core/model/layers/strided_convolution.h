// Convolutions of all channels along time as cuDNN runs them: with strides, over the samples of a
// sound, or in groups. What a kernel and its copies take was measured on an H100 with cuDNN 9.19
// (docs/explanation/special-cases.md).
#pragma once

#include <string>

#include "model/builder.h"

namespace shardplan {

struct StridedConvolution {
  ParameterId weight = kNone, bias = kNone;
  std::int64_t in = 0, out = 0, kernel = 0;  ///< channels, and positions that each result reads
};

/// Registers name.weight [out, in, kernel] (and name.bias).
StridedConvolution strided_convolution(ModelBuilder& m, const std::string& name, std::int64_t in,
                                       std::int64_t out, std::int64_t kernel, bool bias);

/// How a call finds its tensors.
struct ConvolutionCall {
  std::int64_t in = 0, out = 0, kernel = 0, groups = 1;
  Extent positions;         ///< of the result; elements of each do not matter
  bool transposed = false;  ///< the input is a transposed view, of which it makes a copy
  bool turned = false;      ///< so is the gradient of the result
};

/// x convolved with the registered weight: [.., out] at each of `positions`.
ValueId apply(Graph& g, const ModelBuilder& m, const StridedConvolution& c,
              const ConvolutionCall& call, ValueId x);

/// A convolution whose weight is made anew in each forward pass: the size of each column of
/// [out, in / groups, kernel] is a parameter of its own (torch.nn.utils.parametrizations
/// .weight_norm over the last dimension). Padded by half of its kernel on both sides.
struct NormedConvolution {
  ParameterId bias = kNone, sizes = kNone, directions = kNone;
  std::int64_t channels = 0, kernel = 0, groups = 1;
};

/// Registers name.bias and both parts of the weight.
NormedConvolution normed_convolution(ModelBuilder& m, const std::string& name,
                                     std::int64_t channels, std::int64_t kernel,
                                     std::int64_t groups);

/// x [tokens, channels] convolved: as many positions.
ValueId apply(Graph& g, const ModelBuilder& m, const NormedConvolution& c, ValueId x);

}  // namespace shardplan
