#include "simulator/memory.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan {
namespace {

struct Live {
  CategoryBytes bytes{};
  std::int64_t total = 0;

  void add(Category category, std::int64_t more) {
    bytes[index_of(category)] += more;
    total = checked_add(total, more);
  }
  Live operator+(const Live& other) const {
    Live sum{bytes, checked_add(total, other.total)};
    for (std::size_t c = 0; c < kCategoryCount; ++c) sum.bytes[c] += other.bytes[c];
    return sum;
  }
};

/// What a row of blocks does to live bytes, wherever it stands.
struct NetChange {
  std::int64_t count = 0;  ///< blocks in the row
  bool allocates = false;
  Live highest, net;  ///< above what was alive before
};

class MemorySimulator {
 public:
  explicit MemorySimulator(const Program& program)
      : program_(program), events_(program.events), known_(program.blocks.size(), -1) {
    for (const Event& e : program.resident) live_.add(e.category, checked_mul(e.bytes, e.count));
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
  void note_peak() {
    Live& peak = peaks_[phase_];
    if (live_.total > peak.total) peak = live_;
  }

  void note_gradients() {
    profile_.gradients_whole =
        std::max(profile_.gradients_whole, live_.bytes[index_of(Category::gradients)]);
  }

  /// The row that `e` names, played once.
  const NetChange& change_of(const Event& e) {
    std::int32_t& known = known_[static_cast<std::size_t>(e.first)];
    if (known >= 0 && changes_[static_cast<std::size_t>(known)].count == e.count)
      return changes_[static_cast<std::size_t>(known)];
    known = static_cast<std::int32_t>(changes_.size());
    NetChange& change = changes_.emplace_back(NetChange{e.count, false, {}, {}});
    for_each_block(program_, e, [&](const Event& block) {
      const bool allocates = block.kind == Event::Kind::alloc;
      change.net.add(block.category, allocates ? block.bytes : -block.bytes);
      if (!allocates || (change.allocates && change.net.total <= change.highest.total)) return;
      change.allocates = true;
      change.highest = change.net;
    });
    return change;
  }

  void run_blocks(const NetChange& change) {
    Live& peak = peaks_[phase_];
    if (change.allocates && checked_add(live_.total, change.highest.total) > peak.total)
      peak = live_ + change.highest;
    live_ = live_ + change.net;
  }

  void run_range(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Event& e = events_[i];
      switch (e.kind) {
        case Event::Kind::alloc:
          live_.add(e.category, e.bytes);
          note_peak();
          break;
        case Event::Kind::free:
          live_.add(e.category, -e.bytes);
          break;
        case Event::Kind::blocks:
          run_blocks(change_of(e));
          break;
        case Event::Kind::begin_phase:
          phase_ = static_cast<std::size_t>(e.phase);
          if (std::find(profile_.run.begin(), profile_.run.end(), e.phase) == profile_.run.end())
            profile_.run.push_back(e.phase);
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

  const Program& program_;
  const std::vector<Event>& events_;
  Live live_;
  std::array<Live, kPhaseCount> peaks_{};
  std::vector<NetChange> changes_;
  std::vector<std::int32_t> known_;  ///< in `changes_`, by first block; -1: not yet
  std::size_t phase_ = 0;
  MemoryProfile profile_;
};

}  // namespace

MemoryProfile simulate_memory(const Program& program) {
  return MemorySimulator(program).run();
}

}  // namespace shardplan
