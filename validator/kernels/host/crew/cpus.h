// The CPUs that this process may use, as the kernel tells them: no library of NUMA is needed.
#pragma once

#include <vector>

namespace shardplan::validator::host {

/// A rank's part of what ranks of one machine share.
struct RankShare {
  int index = 0, count = 1;
};

struct Cpus {
  std::vector<int> numbers;  ///< node by node
  bool pinned = true;        ///< false: a quota leaves fewer of them than there are to choose from
};

/// Of sched_getaffinity's CPUs, as many as the control group's quota allows, this rank's part; one
/// at least.
Cpus cpus_of(const RankShare& share);

}  // namespace shardplan::validator::host
