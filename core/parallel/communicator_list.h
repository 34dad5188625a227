// Collects the communicators that a process opens, group by group.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "parallel/communicators.h"
#include "parallel/groups.h"

namespace shardplan {

enum class GroupUse : std::uint8_t {
  none,  ///< opened and never used
  collectives,
  all_to_all,  ///< every rank sends to every other
  ring,        ///< to the next rank, from the one before
};

class CommunicatorList {
 public:
  CommunicatorList(const Plan& plan, std::int64_t rank)
      : plan_(plan), shapes_(group_shapes(plan)), rank_(rank) {}

  GroupShape world() const { return {plan_.cluster.world(), plan_.cluster.nodes}; }
  GroupShape shape(Group group) const { return shapes_[static_cast<std::size_t>(group)]; }
  std::int64_t ranks(Group group) const { return shape(group).ranks; }

  void add(std::string_view name, GroupShape shape, GroupUse use) {
    Communicator c{name, shape, use == GroupUse::collectives, {}};
    if (use == GroupUse::all_to_all) c.peers.sends = c.peers.receives = shape.ranks - 1;
    if (use == GroupUse::ring && shape.ranks > 1) c.peers.sends = c.peers.receives = 1;
    all_.push_back(c);
  }
  void add(Group group, GroupUse use = GroupUse::collectives) {
    add(name_of(group), shape(group), use);
  }
  /// Where the framework opens none for a single rank.
  void add_divided(Group group, GroupUse use = GroupUse::collectives) {
    if (ranks(group) > 1) add(group, use);
  }
  /// A dimension of a DeviceMesh: the world's own where it spans that, else one of its own, however
  /// few ranks it has (torch/distributed/device_mesh.py _init_one_process_group).
  void add_dimension(std::string_view name, std::int64_t ranks, GroupShape shape) {
    if (ranks != plan_.cluster.world())
      add(name, {ranks, ranks > 1 ? shape.nodes : 1}, GroupUse::collectives);
  }
  /// Of one that was added: what else goes over it.
  Communicator& at(std::string_view name) {
    return *std::find_if(all_.begin(), all_.end(),
                         [&](const Communicator& c) { return c.name == name; });
  }

  /// This rank's place in the pipeline.
  std::int64_t stage() const {
    return rank_ / std::max<std::int64_t>(1, plan_.cluster.world() / plan_.parallel.pipeline);
  }
  bool first_stage() const { return stage() == 0; }
  bool last_stage() const { return stage() == plan_.parallel.pipeline - 1; }
  /// Stages before and after this one.
  std::int64_t neighbours() const { return (first_stage() ? 0 : 1) + (last_stage() ? 0 : 1); }

  std::vector<Communicator> take() { return std::move(all_); }

 private:
  const Plan& plan_;
  std::array<GroupShape, kGroupCount> shapes_;
  std::int64_t rank_;
  std::vector<Communicator> all_;
};

}  // namespace shardplan
