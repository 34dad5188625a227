#include "questions/workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "json/given_texts.h"
#include "questions/prompt_thread.h"

namespace shardplan {
namespace {

struct Failure {
  std::mutex mutex;
  std::size_t index = 0;
  std::exception_ptr error;

  void note(std::size_t i) {
    const std::lock_guard lock(mutex);
    if (error && index < i) return;
    index = i;
    error = std::current_exception();
  }
};

}  // namespace

void for_each_index(std::size_t count, unsigned threads,
                    const std::function<void(std::size_t)>& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next{0};
  Failure failure;
  const TextsByName* texts = GivenTexts::current();
  const auto run = [&] {
    const GivenTexts given(texts);
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failure.note(i);
      }
    }
  };
  {
    std::vector<PromptThread> others;
    const std::size_t most = std::min<std::size_t>(threads, count);
    for (std::size_t t = 1; t < most; ++t) others.emplace_back(run, t);
    run();
  }
  if (failure.error) std::rethrow_exception(failure.error);
}

}  // namespace shardplan
