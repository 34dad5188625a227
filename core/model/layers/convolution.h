// Convolutions along the sequence: a channel for itself (torch.nn.Conv1d with as many groups as
// channels), as layers with a state have them, and of all channels, as encoders of sound do.
#pragma once

#include <string>
#include <string_view>

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

struct Convolution1d {
  ModuleId module = kNone;
  ParameterId weight = kNone, bias = kNone;
  std::int64_t channels = 0, kernel = 0;
};

/// Registers name.weight [channels, 1, kernel] (and name.bias).
Convolution1d convolution1d(ModelBuilder& m, std::string_view name, std::int64_t channels,
                            std::int64_t kernel, bool bias);

/// x [tokens, channels] convolved with what went before; the kernel - 1 columns that each sequence
/// is longer by before they are cut off are left out.
ValueId apply(Graph& g, const Convolution1d& c, ValueId x);

/// A convolution along time with a kernel of 3: a product over 3·in columns for each output
/// position (Whisper).
struct TimeConvolution {
  ModuleId module = kNone;
  ParameterId weight = kNone, bias = kNone;
  std::int64_t out = 0, width = 0;  ///< width: 3·in
};
TimeConvolution time_convolution(ModelBuilder& m, const std::string& name, std::int64_t in,
                                 std::int64_t out);
/// Its gelu; `rows` output positions for each unit of `scale`. kNone as x: the batch's features.
ValueId convolve(Graph& g, const TimeConvolution& c, std::int64_t rows, Scale scale, ValueId x);

/// Whether a layer of the network mixes neighbouring tokens in another way than by attention: it
/// has such a convolution.
bool convolves_tokens(const Model& model);

/// Throws where the job generates or values tokens for a critic: layers with a state ("gated delta
/// nets") are described for training.
void require_no_generation(const ModelConfig& config, const BuildOptions& options,
                           std::string_view layers);
/// The same, and where it runs Megatron-LM's kernels: the layers are described as transformers
/// trains them.
void require_training(const ModelConfig& config, const BuildOptions& options,
                      std::string_view layers);

}  // namespace shardplan
