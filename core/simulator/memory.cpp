#include "simulator/memory.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan {
namespace {

struct Live {
  CategoryBytes bytes{};
  std::int64_t total = 0;
};

struct Peak {
  std::int64_t total = 0;
  CategoryBytes bytes{};
};

class MemorySimulator {
 public:
  explicit MemorySimulator(const Program& program) : events_(program.events) {
    for (const Event& e : program.resident) add(e.category, checked_mul(e.bytes, e.count));
    profile_.at_start = live_.bytes;
  }

  MemoryProfile run() {
    run_range(0, events_.size());
    for (std::size_t p = 0; p < profile_.phases.size(); ++p) {
      if (peaks_[p].total <= profile_.peak) continue;
      profile_.peak = peaks_[p].total;
      profile_.at_peak = peaks_[p].bytes;
      profile_.peak_phase = static_cast<Phase>(p);
    }
    return profile_;
  }

 private:
  void add(Category category, std::int64_t bytes) {
    auto& slot = live_.bytes[index_of(category)];
    slot = checked_add(slot, bytes);
    live_.total = checked_add(live_.total, bytes);
  }

  void note_peak() {
    Peak& peak = peaks_[phase_];
    if (live_.total > peak.total) peak = {live_.total, live_.bytes};
  }

  void note_gradients() {
    profile_.gradients_whole =
        std::max(profile_.gradients_whole, live_.bytes[index_of(Category::gradients)]);
  }

  void run_range(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Event& e = events_[i];
      switch (e.kind) {
        case Event::Kind::alloc:
          add(e.category, e.bytes);
          note_peak();
          break;
        case Event::Kind::free:
          add(e.category, -e.bytes);
          break;
        case Event::Kind::begin_phase:
          phase_ = static_cast<std::size_t>(e.phase);
          note_peak();
          break;
        case Event::Kind::end_phase:
          profile_.phases[phase_] = {peaks_[phase_].total, live_.total};
          if (e.phase == Phase::backward) note_gradients();
          break;
        case Event::Kind::gradients_whole:
          note_gradients();
          break;
        case Event::Kind::begin_repeat:
          i = run_repeat(i);
          break;
        default:
          break;
      }
    }
  }

  /// Runs the body once as the first iteration; if it leaves something behind, once more as the
  /// last. Returns the index of the matching end.
  std::size_t run_repeat(std::size_t begin) {
    const std::int64_t count = events_[begin].count;
    const std::size_t end = matching_end(events_, begin);
    if (count <= 0) return end;
    const Live before = live_;
    run_range(begin + 1, end);
    if (count == 1) return end;
    const Live once = live_;
    for (std::size_t c = 0; c < kCategoryCount; ++c) {
      const std::int64_t step = once.bytes[c] - before.bytes[c];
      live_.bytes[c] = checked_add(live_.bytes[c], checked_mul(step, count - 2));
    }
    live_.total = checked_add(once.total, checked_mul(once.total - before.total, count - 2));
    run_range(begin + 1, end);
    return end;
  }

  const std::vector<Event>& events_;
  Live live_;
  std::array<Peak, 3> peaks_{};
  std::size_t phase_ = 0;
  MemoryProfile profile_;
};

}  // namespace

MemoryProfile simulate_memory(const Program& program) {
  return MemorySimulator(program).run();
}

}  // namespace shardplan
