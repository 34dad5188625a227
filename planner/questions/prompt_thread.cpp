#include "questions/prompt_thread.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

namespace shardplan {
namespace {

/// None where the system does not say, or has more processors than the set.
std::optional<cpu_set_t> allowed_processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  return allowed;
}

/// The one `place` steps behind this thread's, in a circle.
cpu_set_t processor_at(const cpu_set_t& allowed, std::size_t place) {
  std::size_t cpu = static_cast<std::size_t>(std::max(0, sched_getcpu()));
  for (std::size_t left = place % static_cast<std::size_t>(CPU_COUNT(&allowed)); left > 0;) {
    cpu = (cpu + 1) % CPU_SETSIZE;
    if (CPU_ISSET(cpu, &allowed)) --left;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return one;
}

class Attributes {
 public:
  Attributes() { pthread_attr_init(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { pthread_attr_destroy(&attributes_); }
  pthread_attr_t* get() { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

}  // namespace

struct PromptThread::Start {
  std::function<void()> work;
  std::optional<cpu_set_t> allowed;

  static void* run(void* start) {
    const auto& self = *static_cast<const Start*>(start);
    if (self.allowed) sched_setaffinity(0, sizeof *self.allowed, &*self.allowed);
    self.work();
    return nullptr;
  }
};

PromptThread::PromptThread(std::function<void()> work, std::size_t place)
    : start_(std::make_unique<Start>(Start{std::move(work), allowed_processors()})) {
  Attributes attributes;
  if (start_->allowed) {
    const cpu_set_t first = processor_at(*start_->allowed, place);
    pthread_attr_setaffinity_np(attributes.get(), sizeof first, &first);
  }
  const int error = pthread_create(&thread_, attributes.get(), &Start::run, start_.get());
  if (error != 0) throw std::system_error(error, std::generic_category(), "a thread");
}

PromptThread::PromptThread(PromptThread&& other) noexcept = default;

PromptThread::~PromptThread() {
  if (start_) pthread_join(thread_, nullptr);
}

}  // namespace shardplan
