#include "questions/search/front.h"

#include <algorithm>
#include <utility>

namespace shardplan {

bool ParetoFront::beats(const Score& score, std::int64_t index) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const FrontEntry& e) {
    return dominates(e.score, e.index, score, index);
  });
}

void ParetoFront::admit(FrontEntry entry) {
  std::erase_if(entries_, [&](const FrontEntry& e) {
    return dominates(entry.score, entry.index, e.score, e.index);
  });
  entries_.push_back(std::move(entry));
}

}  // namespace shardplan
