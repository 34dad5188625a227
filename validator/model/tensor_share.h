// One rank's part of a decoder that ranks share layer by layer, as Megatron-LM divides it: heads,
// the inner width of the MLP and the vocabulary are divided, norms and the biases of what is summed
// over the ranks are on all of them. The part is a decoder again, with fewer heads. Experts are
// divided whole, among ranks that have nothing else apart.
#pragma once

#include "model/decoder_layout.h"
#include "model/spec.h"

namespace shardplan::validator {

/// Heads and widths have to be multiples of share.ranks: core refuses jobs where they are not.
DecoderSpec share_of(const DecoderSpec& whole, const TensorShare& share,
                     const ExpertShare& experts = {});

/// The layout of that part, whose parameters know which elements of the whole network's they are.
DecoderLayout lay_out_share(const DecoderSpec& whole, const TensorShare& share,
                            const ExpertShare& experts = {});

}  // namespace shardplan::validator
