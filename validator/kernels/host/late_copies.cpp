#include "kernels/host/late_copies.h"

#include <cstring>

namespace shardplan::validator::host {

void LateCopies::make(Way& way, std::size_t until) {
  for (; way.done < until && !way.waiting.empty(); ++way.done) {
    const Copy& copy = way.waiting.front();
    std::memcpy(copy.to.data(), copy.from.data(), static_cast<std::size_t>(copy.from.bytes()));
    way.waiting.pop_front();
  }
}

void LateCopies::settle(Event event) {
  const auto mark = marks_.find(event);
  if (mark != marks_.end()) make(of(mark->second.stream), mark->second.copies);
}

void LateCopies::settle_all() {
  for (Way& way : ways_) make(way, way.done + way.waiting.size());
}

}  // namespace shardplan::validator::host
