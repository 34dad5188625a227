// Threads that work on the same thing at the same time, each always on its own part of it: the
// memory that a thread wrote first lies at its own NUMA node, and stays its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/host/crew/cpus.h"

namespace shardplan::validator::host {

class Crew {
 public:
  /// One thread a CPU, pinned to it where that is ours to say. The first is whoever calls run().
  explicit Crew(const Cpus& cpus);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  /// work(part) for parts 0 to size() − 1, each by the same thread in every call; returns when all
  /// are done. `work` does not throw.
  void run(const std::function<void(int)>& work);
  /// The same over [0, count): work(first, count of the part), in parts of about the same size
  /// that begin at multiples of kPart.
  static constexpr std::int64_t kPart = 1024;
  void split(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& work);

 private:
  void serve(int part, int cpu);

  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<std::uint32_t> turn_{0};  ///< counts calls of run(); the last one ends the threads
  std::atomic<std::int32_t> left_{0};   ///< threads that are not done
  bool ends_ = false;
};

}  // namespace shardplan::validator::host
