// Where training samples come from: token files, text, or, for perceptrons, made-up classes.
//
// Sample k of a run is the same however the run is divided: rank r takes samples (k·ranks + r) of
// each micro-batch, or its rows of them where ranks share sequences.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/trainer.h"
#include "model/context_share.h"
#include "model/spec.h"

namespace shardplan::validator {

/// How a run's samples are divided.
struct Division {
  std::int64_t micro_batch = 1, sequence = 1, accumulation = 1;
  int rank = 0, world = 1;  ///< among ranks with other samples
  ContextShare share;       ///< among ranks with other rows of the same sequences
  /// Number of the first sample of a micro-batch.
  std::int64_t first_sample(std::int64_t step, std::int64_t micro) const {
    return ((step * accumulation + micro) * world + rank) * micro_batch;
  }
};

using Tokens = std::shared_ptr<const std::vector<std::int32_t>>;

/// Tokens of a file: *.bin and *.u16 hold 16-bit little-endian integers, *.u32 32-bit ones, all
/// others are text, a token a byte. "" is the built-in text. Throws InputError for a file that
/// cannot be read, is too short for one sample or has a token beyond the vocabulary.
Tokens load_tokens(const std::string& path, std::int64_t vocabulary, std::int64_t sequence);

/// What a rank has of a micro-batch of whole sequences.
Batch rows_of(const Batch& whole, std::int64_t sequence, const ContextShare& share);

/// Windows of `sequence` tokens, one behind the other; each position's target is the next token.
std::unique_ptr<BatchSource> token_batches(Tokens tokens, const Division& division);

/// Samples around a centre for each class.
std::unique_ptr<BatchSource> class_batches(const MlpSpec& spec, const Division& division,
                                           std::uint32_t seed);

}  // namespace shardplan::validator
