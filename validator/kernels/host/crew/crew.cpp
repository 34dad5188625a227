#include "kernels/host/crew/crew.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace shardplan::validator::host {
namespace {

/// Looks that a thread takes before it sleeps: calls of one update follow each other within
/// microseconds, and waking up takes longer.
constexpr int kLooks = 4000;

/// Until `atomic` is not `old` any more.
template <typename T>
void wait_while(const std::atomic<T>& atomic, T old) {
  for (int i = 0; i < kLooks; ++i) {
    if (atomic.load(std::memory_order_acquire) != old) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  atomic.wait(old, std::memory_order_acquire);
}

}  // namespace

Crew::Crew(const Cpus& cpus) {
  for (std::size_t i = 1; i < cpus.numbers.size(); ++i)
    threads_.emplace_back([this, part = static_cast<int>(i),
                           cpu = cpus.pinned ? cpus.numbers[i] : -1] { serve(part, cpu); });
}

Crew::~Crew() {
  ends_ = true;
  turn_.fetch_add(1, std::memory_order_release);
  turn_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::serve(int part, int cpu) {
  if (cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // refused: it runs anywhere
  }
  for (std::uint32_t seen = 0;; ++seen) {
    wait_while(turn_, seen);
    if (ends_) return;
    (*work_)(part);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
  }
}

void Crew::run(const std::function<void(int)>& work) {
  work_ = &work;
  left_.store(static_cast<std::int32_t>(threads_.size()), std::memory_order_relaxed);
  turn_.fetch_add(1, std::memory_order_release);
  turn_.notify_all();
  work(0);
  for (std::int32_t left = left_.load(std::memory_order_acquire); left != 0;
       left = left_.load(std::memory_order_acquire))
    wait_while(left_, left);
}

void Crew::split(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& work) {
  const std::int64_t parts = (count + kPart - 1) / kPart;
  if (parts <= 1 || size() == 1) {
    if (count > 0) work(0, count);
    return;
  }
  run([&](int part) {
    const std::int64_t first = kPart * (parts * part / size());
    const std::int64_t last = std::min(count, kPart * (parts * (part + 1) / size()));
    if (last > first) work(first, last - first);
  });
}

}  // namespace shardplan::validator::host
