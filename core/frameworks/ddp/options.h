// Options of torch.nn.parallel.DistributedDataParallel.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace shardplan {

struct DdpOptions {
  bool gradient_as_bucket_view = false;
  bool zero_redundancy_optimizer = false;
  std::optional<bool> find_unused_parameters;  ///< absent: what the trainer says
  std::int64_t bucket_cap_bytes = 25 * kMiB;
};

}  // namespace shardplan
