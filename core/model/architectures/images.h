// Networks that read images: a tower and a projector before a text model, whose embeddings of
// tokens the images' rows take the places of (masked_scatter in transformers' forward).
#pragma once

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

/// Who calls the tower of a network, beside its own class in transformers.
enum class TowerCaller : std::uint8_t {
  transformers,
  mcore_bridge,  ///< 1.6 (model/mm_gpt_model.py), before Megatron Core's layers
};

/// Whether the graphs of tower and projector are wanted: the job trains with images. Throws where
/// it asks for what is not described: generation, Megatron-LM without such a caller.
bool reads_images(const ModelConfig& config, const BuildOptions& options,
                  TowerCaller caller = TowerCaller::transformers);

/// How a tower's graphs are built: by transformers' code, whatever runs the text model's.
BuildOptions tower_options(BuildOptions options);

/// Tokens of an image that the network fixes; throws where the job says another number.
std::int64_t fixed_tokens(const ModelConfig& config, const BuildOptions& options,
                          std::int64_t tokens);

/// An image in pieces of the same size, with the whole among them.
struct ImagePieces {
  std::int64_t tokens = 0, pieces = 1;
};
/// Pieces of `each` tokens: as many as the job's tokens are, or the `most` that the processor's
/// class makes, which `facts` then says. Throws where the job's tokens are no whole pieces.
ImagePieces pieces_of_image(const ModelConfig& config, const BuildOptions& options,
                            ModelFacts& facts, std::int64_t each, std::int64_t most);

/// Whether these parts train: not without images.
bool tower_trains(const BuildOptions& options);
bool projector_trains(const BuildOptions& options);

/// How the rows of images get among those of tokens.
enum class ImagePlacing : std::uint8_t {
  scattered,  ///< masked_scatter
  chosen,     ///< put into zeros by their indices, then torch.where (SmolVLM)
};

/// `outer`, whose last segment leaves the rows of images, before `text`. Without segments in
/// `outer` the text alone is trained. `deep`: so many rows more of each token are added to the
/// results of the first layers, one a layer (BuildOptions::layers_apart).
Model with_images(Model outer, Model text, const ImageFacts& image, std::int64_t deep = 0,
                  ImagePlacing placing = ImagePlacing::scattered);

}  // namespace shardplan
