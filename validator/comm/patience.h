// How long a rank waits for others, and how long it has waited.
#pragma once

#include <chrono>

namespace shardplan::validator {

struct Patience {
  std::chrono::milliseconds start = std::chrono::seconds(60);    ///< until all ranks have met
  std::chrono::milliseconds silence = std::chrono::seconds(20);  ///< of a rank that had come
};

/// Adds its life to what the calling thread has waited for other ranks.
class Waiting {
 public:
  Waiting() = default;
  ~Waiting() { total() += std::chrono::steady_clock::now() - begin_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// Of the calling thread, in seconds.
  static double seconds() { return std::chrono::duration<double>(total()).count(); }

 private:
  static std::chrono::steady_clock::duration& total() {
    thread_local std::chrono::steady_clock::duration waited{};
    return waited;
  }
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace shardplan::validator
