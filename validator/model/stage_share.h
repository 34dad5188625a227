// The layers of a decoder that one stage of a pipeline has: the embedding is on the first, the head
// on the last, and blocks are dealt out in chunks of as many each. A tied embedding is on both: the
// last stage has a copy of its tokens (Megatron-LM does the same).
#pragma once

#include "model/decoder_layout.h"

namespace shardplan::validator {

struct StageShare {
  int stage = 0, stages = 1;
  int chunks = 1;  ///< of each stage, which take turns in the order of the network

  bool first() const { return stage == 0; }
  bool last() const { return stage == stages - 1; }
};

/// Those of one stage of `whole`. Its blocks have to be a multiple of all chunks: core refuses jobs
/// where they are not.
DecoderLayout stage_layout(const DecoderLayout& whole, const StageShare& share);

}  // namespace shardplan::validator
