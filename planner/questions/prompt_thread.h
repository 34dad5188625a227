// A thread that begins at once, for work of a few milliseconds. Linux may put a new thread on its
// maker's processor, where it waits for the next tick of the clock (up to 4 ms, measured on kernel
// 6.18 in half of the starts) while another processor is idle.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace shardplan {

class PromptThread {
 public:
  /// Runs work(), which must not throw, on the processor that is `place` steps behind the maker's
  /// among those that the maker may run on; from there on it may run on all of them. Throws
  /// std::system_error when there can be no thread more.
  PromptThread(std::function<void()> work, std::size_t place);
  PromptThread(PromptThread&& other) noexcept;
  PromptThread& operator=(PromptThread&&) = delete;
  /// Waits until it is done.
  ~PromptThread();

 private:
  struct Start;
  std::unique_ptr<Start> start_;  ///< what the thread reads: it stays where it is
  pthread_t thread_{};
};

}  // namespace shardplan
