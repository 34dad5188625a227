// Bytes of a parameter as it is stored: in its type, or in a format of fewer bits.
#pragma once

#include <cstdint>

#include "formats/stored_format.h"
#include "model/model.h"

namespace shardplan {

/// Bytes of one parameter as it is stored: its elements and each part beside them (scales, zero
/// points; formats/stored_format.h) is a tensor, rounded to the allocation unit.
std::int64_t stored_bytes(const Parameter& parameter, DType type, Quantization quantization);

}  // namespace shardplan
