// Work on parts that share nothing, in turn or however the caller has it done.
#pragma once

#include <cstddef>
#include <functional>

namespace shardplan {

/// Calls work(i) for every i below `count`, each once, and returns when all are done.
using ForEach =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;

inline void in_turn(std::size_t count, const std::function<void(std::size_t)>& work) {
  for (std::size_t i = 0; i < count; ++i) work(i);
}

}  // namespace shardplan
