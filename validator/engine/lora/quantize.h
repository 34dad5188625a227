// Matrices of elements to 4 bits, on the host, before a run begins.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace shardplan::validator {

/// The parts of an Nf4Matrix (device/nf4.h) as they lie in memory.
struct Nf4Bytes {
  std::vector<std::byte> codes, scales, outer;
};

/// Each block of 64 is scaled by its largest magnitude, and each element becomes the nearest code.
/// `doubled`: scales, less their mean, in 8 bits: 255 even steps up to the largest of 256.
Nf4Bytes quantize_nf4(std::span<const float> values, bool doubled);

}  // namespace shardplan::validator
