#include "frameworks/fsdp2/gathers.h"

#include <array>
#include <utility>

namespace shardplan {

std::vector<SegmentRepeat> forward_repeats(const Fsdp2& f,
                                           const std::vector<SegmentRepeat>& repeats) {
  std::vector<SegmentRepeat> forward;
  for (const SegmentRepeat& s : repeats) {
    if (!f.units.is_block(s.segment)) {
      forward.push_back(s);
      continue;
    }
    bool begins = s.begins;
    const std::int64_t first = s.count > 1 ? 1 : 0;
    for (const std::int64_t count : std::array{first, s.count - 1 - first, std::int64_t{1}})
      if (count > 0) forward.push_back({s.segment, count, std::exchange(begins, false)});
  }
  return forward;
}

}  // namespace shardplan
