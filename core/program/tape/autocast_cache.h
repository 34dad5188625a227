// Autocast's cache: one copy of each fp32 weight, until the outermost autocast ends
// (aten/src/ATen/autocast_mode.cpp, cached_cast).
#pragma once

#include <utility>
#include <vector>

#include "program/tape/storages.h"

namespace shardplan::tape {

class AutocastCache {
 public:
  /// kExternal where the weight has no copy yet.
  StorageId find(ParameterId weight) const;
  void add(ParameterId weight, StorageId copy);
  /// The forward pass leaves autocast. What nothing but the cache holds is left to the caller to
  /// free: the events that do it. `now`: it goes at once instead.
  std::vector<TapeEvent> close(Storages& storages, bool now) const;

 private:
  std::vector<StorageId> copies_;   ///< in the order in which they were made
  std::vector<StorageId> copy_of_;  ///< by weight; kExternal: none
};

}  // namespace shardplan::tape
