// The groups of ranks that communicate with each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardplan {

/// Which degree of the division a group's ranks differ in.
enum class Group : std::uint8_t {
  data,          ///< the same parameters, other samples (Ulysses' and context ranks among them)
  tensor,        ///< the same samples, parts of the same layers
  sequence,      ///< Ulysses: parts of the same sequences, then of the heads
  context,       ///< parts of the same sequences; keys and values go round
  expert,        ///< parts of the experts; tokens go to whoever has theirs
  expert_data,   ///< the same experts, other tokens
  pipeline,      ///< neighbouring stages
  shard,         ///< of the data group: parts of one copy of the states, or of ZeRO++'s second one
  replica,       ///< the same part in every shard group
  node,          ///< GPUs of one node, where a collective goes in two hops
  across_nodes,  ///< the same place in several nodes
};
inline constexpr std::size_t kGroupCount = 11;

constexpr std::string_view name_of(Group group) {
  constexpr std::array<std::string_view, kGroupCount> kNames{
      "data",     "tensor", "sequence", "context", "expert",      "expert-data",
      "pipeline", "shard",  "replica",  "node",    "across-nodes"};
  return kNames[static_cast<std::size_t>(group)];
}

/// How many ranks a group has, and how many nodes they are on. No ranks: every GPU of the cluster.
struct GroupShape {
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;
};

}  // namespace shardplan
