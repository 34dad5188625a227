// Options of torch.nn.parallel.DistributedDataParallel.
#pragma once

#include <cstdint>

namespace shardplan {

struct DdpOptions {
  bool gradient_as_bucket_view = false;
  bool zero_redundancy_optimizer = false;
  std::int64_t bucket_cap_bytes = 25 * 1024 * 1024;
};

}  // namespace shardplan
