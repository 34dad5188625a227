// How many elements a tensor of a training step has, as a multiple of the batch's sizes.
#pragma once

#include <cstdint>

#include "base/checked.h"

namespace shardplan {

/// The sizes of one micro-batch on one rank.
struct Sizes {
  std::int64_t batch = 1;
  std::int64_t sequence = 1;  ///< source side of encoder-decoder models
  std::int64_t target = 1;    ///< decoder side of encoder-decoder models
  // With a KV cache, tokens of each sequence.
  std::int64_t context = 1;  ///< that this pass attends to, its own included
  std::int64_t cached = 0;   ///< that a layer's cache has room for when the pass begins
  // Of networks that read images.
  std::int64_t images = 0;   ///< of the batch, in the pieces that the tower sees
  std::int64_t patches = 0;  ///< rows of the tower for each
  /// Tokens of each sequence, the prompt's, that the loss of an answer does not ask for.
  std::int64_t unscored = 0;
};

/// What a tensor grows with; "scores" are the s×s matrices of eager attention.
enum class Scale : std::uint8_t {
  one,
  batch,            ///< b
  sequence,         ///< s
  target_sequence,  ///< t
  tokens,           ///< b·s
  target_tokens,    ///< b·t
  square,           ///< s·s: masks and position biases shared by the batch
  target_square,    ///< t·t
  cross_square,     ///< t·s
  scores,           ///< b·s·s
  target_scores,    ///< b·t·t
  cross_scores,     ///< b·t·s
  context_tokens,   ///< b·c
  context_square,   ///< s·c
  context_scores,   ///< b·s·c
  images,           ///< i
  image_rows,       ///< p: position tables of one image
  patches,          ///< i·p
  patch_scores,     ///< i·p·p
  patch_square,     ///< (i·p)·(i·p): all images are one sequence
  batch_square,     ///< b·b: each text beside each image
  // Of layers with a state, which cut each sequence into c chunks of Extent::chunk tokens.
  chunk_tokens,  ///< b·c·chunk: the last chunk is filled up
  chunks,        ///< b·c
  chunk_ends,    ///< b·(c+1): the states between chunks, with the first and the last
  chunk_pairs,   ///< b·(c+1)·(c+1)
  /// b·(stride·s + edge): before convolutions with strides, or behind one with padding.
  steps,
  alignments,  ///< b·s·(2·t+1): labels with a blank around each, at each position (CTC)
};

/// `per` elements for each unit of `scale`. A hidden state [b, s, h] is {h, Scale::tokens}. Ranks
/// that divide it along its units have one of `shards` parts.
struct Extent {
  std::int64_t per = 0;
  Scale scale = Scale::one;
  std::int64_t shards = 1;
  std::int64_t chunk = 1;             ///< tokens, of the scales that count chunks
  std::int64_t stride = 1, edge = 0;  ///< of Scale::steps
};

/// The same units with another number of elements each.
inline Extent with_per(Extent extent, std::int64_t per) {
  extent.per = per;
  return extent;
}

/// How often `extent.per` is there.
inline std::int64_t units(const Extent& extent, const Sizes& n) {
  const auto chunks = [&] { return ceil_div(n.sequence, extent.chunk); };
  switch (extent.scale) {
    case Scale::one:
      return 1;
    case Scale::batch:
      return n.batch;
    case Scale::sequence:
      return n.sequence;
    case Scale::target_sequence:
      return n.target;
    case Scale::tokens:
      return checked_mul(n.batch, n.sequence);
    case Scale::target_tokens:
      return checked_mul(n.batch, n.target);
    case Scale::square:
      return checked_mul(n.sequence, n.sequence);
    case Scale::target_square:
      return checked_mul(n.target, n.target);
    case Scale::cross_square:
      return checked_mul(n.target, n.sequence);
    case Scale::scores:
      return checked_mul(n.batch, checked_mul(n.sequence, n.sequence));
    case Scale::target_scores:
      return checked_mul(n.batch, checked_mul(n.target, n.target));
    case Scale::cross_scores:
      return checked_mul(n.batch, checked_mul(n.target, n.sequence));
    case Scale::context_tokens:
      return checked_mul(n.batch, n.context);
    case Scale::context_square:
      return checked_mul(n.sequence, n.context);
    case Scale::context_scores:
      return checked_mul(n.batch, checked_mul(n.sequence, n.context));
    case Scale::images:
      return n.images;
    case Scale::image_rows:
      return n.patches;
    case Scale::patches:
      return checked_mul(n.images, n.patches);
    case Scale::patch_scores:
      return checked_mul(n.images, checked_mul(n.patches, n.patches));
    case Scale::patch_square:
      return checked_mul(checked_mul(n.images, n.patches), checked_mul(n.images, n.patches));
    case Scale::batch_square:
      return checked_mul(n.batch, n.batch);
    case Scale::chunk_tokens:
      return checked_mul(n.batch, checked_mul(chunks(), extent.chunk));
    case Scale::chunks:
      return checked_mul(n.batch, chunks());
    case Scale::chunk_ends:
      return checked_mul(n.batch, checked_add(chunks(), 1));
    case Scale::chunk_pairs:
      return checked_mul(n.batch, checked_mul(checked_add(chunks(), 1), checked_add(chunks(), 1)));
    case Scale::steps:
      return checked_mul(n.batch, checked_add(checked_mul(extent.stride, n.sequence), extent.edge));
    case Scale::alignments:
      return checked_mul(n.batch, checked_mul(n.sequence, checked_add(n.target, n.target + 1)));
  }
  return 0;
}

inline std::int64_t elements(Extent extent, const Sizes& n) {
  const std::int64_t all = checked_mul(extent.per, units(extent, n));
  return extent.shards == 1 ? all : ceil_div(all, extent.shards);
}

}  // namespace shardplan
