// The layout of a decoder whose blocks keep their matrices in 4 bits, and their experts too if they
// are to: what else a block has stays in its unit, and the matrices are in one of bytes.
#pragma once

#include "model/decoder_layout.h"

namespace shardplan::validator {

/// `plain`: the layout of `spec` with matrices of elements.
DecoderLayout quantize_blocks(const DecoderLayout& plain, const DecoderSpec& spec);

}  // namespace shardplan::validator
