// Bytes of a parameter as it is stored: in its type, or in a format of fewer bits.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Bytes of one parameter as it is stored, rounded to the allocation unit. nf4 weights are packed
/// two a byte, with an fp32 scale a block of 64, or, quantized twice, one byte a block and an fp32
/// scale a 256 blocks (bitsandbytes/functional.py); the other formats are Quantization's.
std::int64_t stored_bytes(const Parameter& parameter, DType type, Quantization quantization);

}  // namespace shardplan
