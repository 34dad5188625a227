// Numbers to and from the bytes of an element type.
#pragma once

#include <cstddef>
#include <vector>

#include "formats/dtype.h"

namespace shardplan::validator {

/// Rounded to nearest.
std::vector<std::byte> encode(const std::vector<double>& values, DType dtype);
std::vector<double> decode(const std::vector<std::byte>& bytes, DType dtype);

}  // namespace shardplan::validator
