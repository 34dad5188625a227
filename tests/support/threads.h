// The threads of this process, as Linux counts them.
#pragma once

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

namespace shardplan {

inline int thread_count() {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

/// A thread that was joined leaves the list a moment later. False: still more than `count` after a
/// minute.
inline bool falls_to(int count) {
  for (int wait = 0; wait < 60'000 && thread_count() > count; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return thread_count() <= count;
}

}  // namespace shardplan
