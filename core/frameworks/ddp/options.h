// Options of torch.nn.parallel.DistributedDataParallel.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace shardplan {

struct DdpOptions {
  bool gradient_as_bucket_view = false;
  bool zero_redundancy_optimizer = false;
  std::int64_t bucket_cap_bytes = 25 * kMiB;
  std::int64_t first_bucket_bytes = kMiB;
};

}  // namespace shardplan
