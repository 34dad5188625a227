// What of a rank lies in the host's memory, and how it is divided to be moved.
//
// Gradients leave the device bucket by bucket while the backward pass runs, each rank those that it
// owns. The host's cores update masters and moments, and the parameters come back. A unit is
// updated when the next step first needs it, so that a unit's way back and the forward pass go on
// beside the update of the next one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory/tensor.h"

namespace shardplan::validator {

struct Offload {
  bool states = false;      ///< masters and moments are kept and updated on the host
  bool on_nvme = false;     ///< they are kept in a file and come to the host bucket by bucket
  bool parameters = false;  ///< the shards of the parameters are kept on the host (stage 3)
  bool parameters_on_nvme = false;  ///< in that file, and come to the host unit by unit
  bool direct = false;              ///< or to the device, past the host's memory
  /// A step's update is made while the next step runs, which does not have it yet (ZeRO-Offload's
  /// delayed parameter update).
  bool delayed = false;

  bool uses_nvme() const { return on_nvme || parameters_on_nvme; }
};

/// Elements that are copied and updated at once: enough for a link and for many cores, few enough
/// that the first ones are back soon.
inline constexpr std::int64_t kBucketElements = std::int64_t{1} << 22;

inline std::int64_t buckets_of(std::int64_t elements) {
  return (elements + kBucketElements - 1) / kBucketElements;
}

/// A bucket's part of what a rank owns of a unit.
struct BucketRange {
  std::int64_t first = 0, count = 0;
  Tensor operator()(const Tensor& x) const { return x.empty() ? x : x.slice(first, count); }
};

inline BucketRange bucket_range(std::int64_t elements, std::int64_t bucket) {
  const std::int64_t first = bucket * kBucketElements;
  return {first, std::min(kBucketElements, elements - first)};
}

/// Calls visit(number, range) for each bucket of [0, elements): `range(x)` is x's part.
template <typename Visit>
void for_each_bucket(std::int64_t elements, Visit&& visit) {
  for (std::int64_t b = 0; b < buckets_of(elements); ++b) visit(b, bucket_range(elements, b));
}

}  // namespace shardplan::validator
