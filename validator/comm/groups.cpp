#include "comm/groups.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "comm/sole_rank.h"

namespace shardplan::validator {

Groups::Groups(Backend& device, Communicator& world, const ModelDegrees& degrees)
    : tensor_(make(device, world, degrees.tensor, 1)),
      data_(make(device, world, world.size() / (degrees.tensor * degrees.stages), degrees.tensor)),
      context_(make_context(device, world, degrees, data_)),
      stages_(make(device, world, degrees.stages, world.size() / degrees.stages)),
      ends_(degrees.tied_ends && degrees.stages > 2 ? pair_ends(device, world, degrees.stages)
                                                    : Group{}) {
  assert(world.size() % (degrees.tensor * degrees.context * degrees.stages) == 0);
  experts_ = make(device, world, degrees.experts, 1);
  if (degrees.experts > 1) {
    experts_.used->connect_all();
    const int stage = world.size() / degrees.stages;
    assert(stage % degrees.experts == 0);
    copies_ = make(device, world, stage / degrees.experts, degrees.experts);
  } else if (degrees.sparse && degrees.tensor > 1) {
    assert(degrees.stages == 1);
    copies_.used = &world;
  } else {
    copies_.used = data_.used;
  }
  if (degrees.context > 1) context_.used->connect_neighbours();
  if (degrees.stages > 1) stages_.used->connect_neighbours();
  if (ends_.used != nullptr) return;
  if (degrees.tied_ends && degrees.stages == 2) {
    ends_.used = stages_.used;
  } else {
    ends_ = make(device, world, 1, 1);
  }
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

Groups::Group Groups::make_context(Backend& device, Communicator& world,
                                   const ModelDegrees& degrees, const Group& data) {
  if (degrees.context == data.used->size()) return {nullptr, data.used};
  return make(device, world, degrees.context, degrees.tensor);
}

Groups::Group Groups::pair_ends(Backend& device, Communicator& world, int stages) {
  const int each = world.size() / stages, stage = world.rank() / each;
  const int first = std::min(stage, stages - 1 - stage), last = stages - 1 - first;
  std::vector<int> members{world.rank() + (first - stage) * each};
  if (last != first) members.push_back(world.rank() + (last - stage) * each);
  Group group{world.group(members), nullptr};
  // The ranks between the ends have nothing in common.
  if (first > 0) group.own = make_sole_communicator(device);
  group.used = group.own.get();
  return group;
}

std::int64_t Groups::overhead_bytes() const {
  std::int64_t bytes = 0;
  for (const Group* group : {&tensor_, &data_, &context_, &stages_, &ends_, &experts_, &copies_})
    if (group->own) bytes += group->own->overhead_bytes();
  return bytes;
}

}  // namespace shardplan::validator
