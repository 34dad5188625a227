#include "program/tape/autocast_cache.h"

namespace shardplan::tape {

StorageId AutocastCache::find(ParameterId weight) const {
  const auto place = static_cast<std::size_t>(weight);
  return place < copy_of_.size() ? copy_of_[place] : kExternal;
}

void AutocastCache::add(ParameterId weight, StorageId copy) {
  const auto place = static_cast<std::size_t>(weight);
  if (copy_of_.size() <= place) copy_of_.resize(place + 1, kExternal);
  copy_of_[place] = copy;
  copies_.push_back(copy);
}

std::vector<TapeEvent> AutocastCache::close(Storages& storages, bool now) const {
  std::vector<TapeEvent> alone;
  for (const StorageId copy : copies_) {
    if (now || storages.is_shared(copy)) {
      storages.unref(copy);
    } else {
      alone.push_back(storages.free_event(copy));
    }
  }
  return alone;
}

}  // namespace shardplan::tape
