#include "simulator/timeline.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan {
namespace {

/// A repetition with more iterations is shown by its first and last, like the micro-batches.
constexpr std::int64_t kMostIterations = 512;

class Recorder {
 public:
  explicit Recorder(const Program& program) : program_(program), events_(program.events) {
    for (const Event& e : program.resident) add(e.category, checked_mul(e.bytes, e.count));
    const auto first = std::find_if(events_.begin(), events_.end(), [](const Event& e) {
      return e.kind == Event::Kind::begin_phase;
    });
    if (first != events_.end()) now_.phase = first->phase;  // what is there before it belongs to it
  }

  MemoryTimeline run() {
    note();
    run_range(0, events_.size());
    note();
    out_.micro_batches = std::max<std::int64_t>(1, forwards_);
    for (std::size_t i = 1; i < out_.points.size(); ++i)
      if (out_.points[i].total > out_.points[out_.peak].total) out_.peak = i;
    return std::move(out_);
  }

 private:
  void add(Category category, std::int64_t bytes) {
    auto& slot = now_.live[index_of(category)];
    slot = checked_add(slot, bytes);
    now_.total = checked_add(now_.total, bytes);
  }

  void note() { out_.points.push_back(now_); }

  /// Notes the bytes before `e` when they are a turn.
  void change(const Event& e) {
    const bool grows = e.kind == Event::Kind::alloc;
    if (grows != grows_) note();
    grows_ = grows;
    add(e.category, grows ? e.bytes : -e.bytes);
  }

  void run_range(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Event& e = events_[i];
      switch (e.kind) {
        case Event::Kind::alloc:
        case Event::Kind::free:
          change(e);
          break;
        case Event::Kind::blocks:
          for_each_block(program_, e, [&](const Event& block) { change(block); });
          break;
        case Event::Kind::begin_phase:
          note();
          if (e.phase == Phase::forward) now_.micro_batch = forwards_++;
          now_.phase = e.phase;
          note();
          break;
        case Event::Kind::end_phase:
          note();
          break;
        case Event::Kind::begin_repeat:
          i = run_repeat(i);
          break;
        default:
          break;
      }
    }
  }

  /// Runs the body as often as it is to be seen. Returns the index of the matching end.
  std::size_t run_repeat(std::size_t begin) {
    const std::int64_t count = events_[begin].count;
    const std::size_t end = matching_end(events_, begin);
    bool has_phases = false;
    for (std::size_t i = begin; i < end; ++i)
      has_phases = has_phases || events_[i].kind == Event::Kind::begin_phase;
    const std::int64_t iteration = now_.iteration, iterations = now_.iterations;
    const bool shortened = count > 2 && (has_phases || count > kMostIterations);
    for (std::int64_t k = 0; k < count; ++k) {
      if (!has_phases) {
        now_.iteration = k;
        now_.iterations = count;
      }
      const TimelinePoint before = now_;
      const std::int64_t forwards = forwards_;
      run_range(begin + 1, end);
      if (k == 0 && shortened) {
        skip(before, count - 2);
        forwards_ += (forwards_ - forwards) * (count - 2);
        k = count - 2;
      }
    }
    now_.iteration = iteration;
    now_.iterations = iterations;
    return end;
  }

  /// `times` more iterations leave what the one since `before` left, each.
  void skip(const TimelinePoint& before, std::int64_t times) {
    for (std::size_t c = 0; c < kCategoryCount; ++c)
      add(static_cast<Category>(c), checked_mul(now_.live[c] - before.live[c], times));
  }

  const Program& program_;
  const std::vector<Event>& events_;
  TimelinePoint now_;
  bool grows_ = true;
  std::int64_t forwards_ = 0;  ///< passes begun: one a micro-batch
  MemoryTimeline out_;
};

}  // namespace

MemoryTimeline memory_timeline(const Program& program) {
  return Recorder(program).run();
}

}  // namespace shardplan
