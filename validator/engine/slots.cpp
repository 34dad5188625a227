#include "engine/slots.h"

#include <algorithm>

namespace shardplan::validator {

SlotMap map_slots(const std::vector<Unit>& units, const Sharding& sharding, bool tied, SlotsOf of) {
  SlotMap map;
  const auto find = [&](const std::string& name) {
    const auto at = std::find_if(map.slots.begin(), map.slots.end(),
                                 [&](const Slot& slot) { return slot.name == name; });
    if (at != map.slots.end()) return static_cast<int>(at - map.slots.begin());
    map.slots.push_back({name});
    return static_cast<int>(map.slots.size()) - 1;
  };
  int block = 0;
  for (const Unit& unit : units) {
    if (unit.kind == Unit::Kind::block) ++block;
    if (unit.frozen && of == SlotsOf::gradients) {
      map.of_unit.push_back(-1);
      continue;
    }
    int slot = 0;
    if (unit.kind == Unit::Kind::block) {
      slot = find(block % 2 == 1 ? "even" : "odd");
    } else if (unit.kind == Unit::Kind::quantized) {
      slot = find(block % 2 == 1 ? "quantized.even" : "quantized.odd");
    } else if (unit.kind == Unit::Kind::adapters) {
      slot = find(block % 2 == 1 ? "adapters.even" : "adapters.odd");  // of the block before
    } else if (unit.kind == Unit::Kind::experts) {
      slot = find(block % 2 == 1 ? "experts.even" : "experts.odd");  // of the block before
    } else if (unit.kind == Unit::Kind::expert_adapters) {
      slot = find(block % 2 == 1 ? "expert_adapters.even" : "expert_adapters.odd");
    } else if (tied) {
      slot = find(unit.name);
    } else {
      slot = find("outer");
    }
    Slot& room = map.slots[static_cast<std::size_t>(slot)];
    room.bytes = unit.kind == Unit::Kind::quantized;
    room.numel = std::max(room.numel, sharding.padded(unit));
    map.of_unit.push_back(slot);
  }
  return map;
}

}  // namespace shardplan::validator
