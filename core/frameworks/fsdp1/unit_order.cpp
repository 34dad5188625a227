#include "frameworks/fsdp1/unit_order.h"

namespace shardplan {

std::vector<SegmentRepeat> with_last_apart(const FlatUnits& units,
                                           const std::vector<SegmentRepeat>& all) {
  std::vector<SegmentRepeat> apart;
  for (const SegmentRepeat& s : all) {
    if (units.is_block(s.segment) && s.count > 1) {
      apart.push_back({s.segment, s.count - 1});
      apart.push_back({s.segment, 1});
    } else {
      apart.push_back(s);
    }
  }
  return apart;
}

const FlatUnit* unit_after(const FlatUnits& units, const std::vector<SegmentRepeat>& repeats,
                           std::size_t k) {
  if (repeats[k].count > 1) return &units.blocks[repeats[k].segment];
  for (std::size_t i = k + 1; i < repeats.size(); ++i)
    if (units.is_block(repeats[i].segment)) return &units.blocks[repeats[i].segment];
  return nullptr;
}

const FlatUnit* first_unit(const FlatUnits& units, const std::vector<SegmentRepeat>& repeats) {
  for (const SegmentRepeat& s : repeats)
    if (units.is_block(s.segment)) return &units.blocks[s.segment];
  return nullptr;
}

}  // namespace shardplan
