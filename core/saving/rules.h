// How a framework writes a run's checkpoints: a trait of each (frameworks/traits.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan {

enum class SavedBy : std::uint8_t {
  nobody,     ///< not in the files
  one_rank,   ///< of the ranks that have the same part of the network: whole tensors, one file
  each_rank,  ///< what it keeps, into a file of its own
};

/// FSDP's state_dict_type: a file of each rank's shards, or whole tensors by one rank.
enum class StateDictType : std::uint8_t { sharded, full };

struct SaveRules {
  SavedBy weights = SavedBy::one_rank;  ///< in the parameters' type
  SavedBy states = SavedBy::one_rank;   ///< of the optimizer
  bool masters = false;                 ///< beside the states: the optimizer's copy of the weights
  bool frozen = false;                  ///< what does not train is in the files too
  bool weights_apart = false;           ///< a file of the trained weights alone, by one rank
  std::string_view files;               ///< what they are called
};

}  // namespace shardplan
