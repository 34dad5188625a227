#include "launch/ranks.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/lookout.h"
#include "comm/threads.h"
#include "device/errors.h"
#include "kernels/host/host_backend.h"

namespace shardplan::validator {
namespace {

/// A rank whose exchange was aborted ends as soon as it looks.
constexpr std::chrono::seconds kPatience{5};

/// What the threads share; they keep it alive, because one may be left behind.
struct RankThreads {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Communicator*> communicators;  ///< of running ranks
  int running = 0;
  std::exception_ptr failure;
  bool failed_alone = false;  ///< the failure is not just another rank's

  void fail(std::exception_ptr error) {
    bool alone = true;
    try {
      std::rethrow_exception(error);
    } catch (const PeerFailure&) {
      alone = false;
    } catch (...) {
    }
    const std::lock_guard lock(mutex);
    if (!failure || (alone && !failed_alone)) {
      failure = std::move(error);
      failed_alone = alone;
    }
    for (Communicator* c : communicators)
      if (c != nullptr) c->abort();
    changed.notify_all();
  }
};

void run_rank(RankThreads& crew, std::size_t slot, int rank, const MakeRank& make,
              const std::function<void(RankDevice&)>& body) {
  try {
    RankDevice device = make(rank);
    {
      const std::lock_guard lock(crew.mutex);
      crew.communicators[slot] = device.communicator.get();
      if (crew.failure) device.communicator->abort();
    }
    try {
      body(device);
    } catch (...) {
      crew.fail(std::current_exception());
    }
    const std::lock_guard lock(crew.mutex);
    crew.communicators[slot] = nullptr;
  } catch (...) {
    crew.fail(std::current_exception());
  }
}

}  // namespace

void run_ranks(int first_rank, int count, const MakeRank& make,
               const std::function<void(RankDevice&)>& body, Lookout* lookout) {
  const auto crew = std::make_shared<RankThreads>();
  crew->communicators.resize(static_cast<std::size_t>(count));
  crew->running = count;
  if (lookout != nullptr)
    lookout->on_loss(
        [crew](const Loss& loss) { crew->fail(std::make_exception_ptr(PeerFailure(loss.text))); });
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([crew, i, first_rank, make, body] {
      run_rank(*crew, static_cast<std::size_t>(i), first_rank + i, make, body);
      const std::lock_guard lock(crew->mutex);
      --crew->running;
      crew->changed.notify_all();
    });
  bool left_behind = false;
  {
    std::unique_lock lock(crew->mutex);
    crew->changed.wait(lock, [&] { return crew->running == 0 || crew->failure; });
    left_behind = !crew->changed.wait_for(lock, kPatience, [&] { return crew->running == 0; });
  }
  if (lookout != nullptr) lookout->on_loss({});
  for (std::thread& thread : threads) left_behind ? thread.detach() : thread.join();
  const std::lock_guard lock(crew->mutex);
  if (left_behind && !crew->failed_alone)
    throw PeerFailure("a rank did not end within 5 seconds of another's failure");
  if (crew->failure) std::rethrow_exception(crew->failure);
}

MakeRank host_ranks(int world, std::int64_t capacity_bytes, Patience patience) {
  return [meeting = make_meeting(world, patience.silence), capacity_bytes](int rank) {
    return RankDevice{make_host_backend(capacity_bytes), make_thread_communicator(meeting, rank)};
  };
}

}  // namespace shardplan::validator
