// What a step sends over each link, by what it is sent for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hardware/cluster.h"
#include "program/program.h"

namespace shardplan {

struct TrafficLine {
  std::string_view what;
  LinkKind link = LinkKind::gpu;
  std::int64_t bytes_per_step = 0;       ///< sent by one GPU (ring algorithms), or copied for it
  std::int64_t bytes_between_nodes = 0;  ///< one GPU's share of what leaves its node
  std::int64_t payload_bytes = 0;        ///< of the collective's buffer
  std::int64_t count = 0;                ///< calls a step
};

/// One line for each purpose and link, in the order of the program. Throws OverflowError for sizes
/// beyond 64 bits.
std::vector<TrafficLine> traffic_of(const Program& program, const Cluster& cluster);

}  // namespace shardplan
