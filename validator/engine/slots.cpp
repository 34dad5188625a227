#include "engine/slots.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace shardplan::validator {
namespace {

/// What the slots of a block's unit are called, before which of the two it is; nothing of others.
std::optional<std::string_view> name_beside(Unit::Kind kind) {
  switch (kind) {
    case Unit::Kind::block:
      return "";
    case Unit::Kind::experts:
      return "experts.";
    case Unit::Kind::quantized:
      return "quantized.";
    case Unit::Kind::quantized_experts:
      return "quantized_experts.";
    case Unit::Kind::adapters:
      return "adapters.";
    case Unit::Kind::expert_adapters:
      return "expert_adapters.";
    case Unit::Kind::embedding:
    case Unit::Kind::head:
      break;
  }
  return std::nullopt;
}

}  // namespace

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
    if (const auto name = name_beside(unit.kind)) {
      slot = find(std::string(*name) + (block % 2 == 1 ? "even" : "odd"));  // of the block before
    } else if (tied) {
      slot = find(unit.name);
    } else {
      slot = find("outer");
    }
    Slot& room = map.slots[static_cast<std::size_t>(slot)];
    room.bytes = unit.of_bytes();
    room.numel = std::max(room.numel, sharding.padded(unit));
    map.of_unit.push_back(slot);
  }
  return map;
}

}  // namespace shardplan::validator
