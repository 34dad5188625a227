#include "program/tape/autocast_cache.h"

#include <algorithm>

namespace shardplan::tape {

StorageId AutocastCache::find(ParameterId weight) const {
  const auto known = std::find_if(copies_.begin(), copies_.end(),
                                  [&](const auto& copy) { return copy.first == weight; });
  return known == copies_.end() ? kExternal : known->second;
}

std::vector<TapeEvent> AutocastCache::close(Storages& storages, bool now) const {
  std::vector<TapeEvent> alone;
  for (const auto& [weight, copy] : copies_) {
    if (now || storages.is_shared(copy)) {
      storages.unref(copy);
    } else {
      alone.push_back(storages.free_event(copy));
    }
  }
  return alone;
}

}  // namespace shardplan::tape
