#include "comm/groups.h"

#include <cassert>
#include <vector>

#include "comm/sole_rank.h"

namespace shardplan::validator {

Groups::Groups(Backend& device, Communicator& world, int tensor)
    : tensor_(make(device, world, tensor, 1)),
      data_(make(device, world, world.size() / tensor, tensor)) {
  assert(world.size() % tensor == 0);
}

Groups::Group Groups::make(Backend& device, Communicator& world, int count, int stride) {
  Group group{nullptr, &world};
  if (count == world.size()) return group;
  if (count == 1) {
    group.own = make_sole_communicator(device);
  } else {
    const int place = world.rank() / stride % count;
    std::vector<int> members;
    for (int i = 0; i < count; ++i) members.push_back(world.rank() + (i - place) * stride);
    group.own = world.group(members);
  }
  group.used = group.own.get();
  return group;
}

std::int64_t Groups::overhead_bytes() const {
  std::int64_t bytes = 0;
  for (const Group* group : {&tensor_, &data_})
    if (group->own) bytes += group->own->overhead_bytes();
  return bytes;
}

}  // namespace shardplan::validator
