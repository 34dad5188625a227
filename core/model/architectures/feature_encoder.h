// The convolutions that Wav2Vec2 makes frames of a sound's samples with: tensors, lengths, graphs.
#pragma once

#include <string>
#include <vector>

#include "model/builder.h"
#include "model/config.h"
#include "model/layers/mlp.h"
#include "model/layers/strided_convolution.h"

namespace shardplan {

struct FeatureEncoder {
  struct Layer {
    StridedConvolution convolution;
    NormModule norm;  ///< module kNone: it has none
    std::int64_t stride = 1;
  };
  std::vector<Layer> layers;
  bool each_normed = false;  ///< by LayerNorm; else the first one alone, each channel for itself
  bool trains = true;        ///< not after freeze_feature_encoder()
  Activation activation = Activation::gelu;

  std::int64_t channels() const { return layers.back().convolution.out; }
  /// Positions before layer `i` of each sequence; behind the last one they are its frames. The
  /// most that leave so many frames, floor((n − kernel) / stride) + 1 in each layer.
  Extent positions(std::size_t i) const;
  /// What a frame is, and how many samples are assumed, for people.
  std::string words() const;
};

/// Reads conv_dim, conv_kernel, conv_stride, conv_bias, feat_extract_norm and
/// feat_extract_activation, and registers at.conv_layers.{i}.
FeatureEncoder feature_encoder(ModelBuilder& m, const std::string& at, const ModelConfig& config);

/// Writes a segment a layer: each is a GradientCheckpointingLayer in transformers. The last one's
/// frames are left in the chain.
void write_feature_encoder(ModelBuilder& m, const FeatureEncoder& encoder);

}  // namespace shardplan
