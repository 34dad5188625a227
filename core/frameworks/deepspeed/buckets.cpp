#include "frameworks/deepspeed/buckets.h"

#include <algorithm>
#include <ranges>

#include "lowering/gradient_uses.h"

namespace shardplan {

std::vector<bool> summed_apart(const Model& model, const ModelRun& run) {
  std::vector<bool> apart(model.parameters.size(), false);
  for (const SegmentRun& s : run.segments | std::views::reverse) {  // as gradients come
    const TapeEvent* made = nullptr;  // the gradient that was made last, and is there
    for (const TapeEvent& e : s.backward.backward) {
      const bool gradient = e.category == Category::gradients;
      if (e.kind == TapeEvent::Kind::alloc && gradient) made = &e;
      if (e.kind == TapeEvent::Kind::free && made != nullptr && e.id == made->id) made = nullptr;
      if (e.kind != TapeEvent::Kind::gradient) continue;
      apart[static_cast<std::size_t>(e.id)] = made != nullptr && made->bytes == e.bytes;
      made = nullptr;
    }
  }
  return apart;
}

namespace {

/// A gradient of one iteration, with the iterations (as backward runs) that this rank owns.
struct Arrival {
  ParameterId id = kNone;
  std::int64_t numel = 0;
  LayerRange owned;
  bool apart = false;  ///< an expert, where those have buckets of their own
};

class Scheduler {
 public:
  Scheduler(std::int64_t capacity, const std::function<bool(std::int64_t, std::int64_t)>& divides)
      : capacity_(capacity), divides_(divides) {}

  void run(std::size_t segment, std::int64_t repeat, const std::vector<Arrival>& arrivals) {
    std::int64_t size = 0, next_owned = repeat;
    for (const Arrival& a : arrivals) {
      size += a.numel;
      if (a.owned.first < a.owned.end) next_owned = std::min(next_owned, a.owned.first);
    }
    if (size == 0) return;
    const bool mixed = std::any_of(arrivals.begin(), arrivals.end(), [&](const Arrival& a) {
      return a.apart != arrivals.front().apart || (filled_ > 0 && a.apart != apart_);
    });
    if (!schedule_.first_gradient) schedule_.first_gradient = {segment, 0, arrivals.front().id};
    for (std::int64_t i = 0; i < repeat; ++i) {
      // Whole iterations that fit in the bucket need no walk, up to the first that is owned.
      const bool decided = owned_ || schedule_.first_own;
      const std::int64_t limit = mixed ? i : decided ? repeat : std::max(next_owned, i);
      const std::int64_t skipped =
          std::min(std::max<std::int64_t>(capacity_ - filled_, 0) / size, limit - i);
      filled_ += skipped * size;
      tensors_ += skipped * static_cast<std::int64_t>(arrivals.size());
      i += skipped;
      if (i == repeat) return;
      for (const Arrival& a : arrivals) {
        const bool fits = filled_ + a.numel <= capacity_ && a.apart == apart_;
        if (filled_ > 0 && !fits) flush({segment, i, a.id});
        filled_ += a.numel;
        ++tensors_;
        apart_ = a.apart;
        owned_ = owned_ || a.owned.contains(i);
      }
    }
  }

  BucketSchedule finish() {
    if (filled_ > 0) {
      ++schedule_.flushes;
      note_bucket();
      schedule_.last = {filled_, tensors_};
      if (divides_ && divides_(flushed_, flushed_ + filled_))
        schedule_.last_divided_elements = filled_;
    }
    return schedule_;
  }

 private:
  void note_bucket() {
    const FlushedBucket bucket{filled_, tensors_};
    if (!schedule_.first_flush) schedule_.first = bucket;
    if (tensors_ > 1 && filled_ > schedule_.fullest.elements) schedule_.fullest = bucket;
    schedule_.most_elements = std::max(schedule_.most_elements, filled_);
  }

  void flush(const BackwardPlace& place) {
    ++schedule_.flushes;
    note_bucket();
    if (!schedule_.first_flush) schedule_.first_flush = place;
    if (owned_ && !schedule_.first_own) schedule_.first_own = place;
    if (divides_ && !schedule_.first_divided && divides_(flushed_, flushed_ + filled_)) {
      schedule_.first_divided = place;
      schedule_.divided_elements = filled_;
    }
    flushed_ += filled_;
    filled_ = tensors_ = 0;
    owned_ = false;
  }

  std::int64_t capacity_;
  const std::function<bool(std::int64_t, std::int64_t)>& divides_;
  std::int64_t filled_ = 0;
  std::int64_t tensors_ = 0;
  std::int64_t flushed_ = 0;  ///< elements of all flushes until now
  bool apart_ = false;        ///< it holds experts alone
  bool owned_ = false;        ///< the bucket has a gradient of this rank's partition
  BucketSchedule schedule_;
};

}  // namespace

BucketSchedule schedule_buckets(const Model& model, const ModelRun& run, std::int64_t capacity,
                                const std::function<LayerRange(ParameterId)>& owned,
                                bool experts_apart,
                                const std::function<bool(std::int64_t, std::int64_t)>& divides) {
  Scheduler scheduler(capacity, divides);
  GradientUses uses(model, run, whole_segments(run));
  std::vector<Arrival> arrivals;
  for (std::size_t s = run.segments.size(); s-- > 0;) {
    const std::int64_t repeat = run.segments[s].segment->repeat;
    arrivals.clear();
    for (const TapeEvent& e : run.segments[s].backward.backward) {
      if (e.kind != TapeEvent::Kind::gradient) continue;
      if (waits(uses.next(e.id))) continue;
      const LayerRange layers = owned(e.id);
      const Parameter& p = model.parameters[static_cast<std::size_t>(e.id)];
      arrivals.push_back({e.id,
                          p.numel,
                          {repeat - layers.end, repeat - layers.first},
                          experts_apart && p.kind == ParameterKind::expert});
    }
    scheduler.run(s, repeat, arrivals);
  }
  return scheduler.finish();
}

std::vector<SegmentRepeat> cut_backward(const ModelRun& run,
                                        const std::vector<std::optional<BackwardPlace>>& cuts) {
  std::vector<SegmentRepeat> repeats;
  for (std::size_t s = run.segments.size(); s-- > 0;) {
    std::vector<std::int64_t> singles;
    for (const auto& cut : cuts)
      if (cut && cut->segment == s) singles.push_back(cut->iteration);
    std::sort(singles.begin(), singles.end());
    singles.erase(std::unique(singles.begin(), singles.end()), singles.end());
    std::int64_t at = 0;
    for (const std::int64_t single : singles) {
      if (single > at) repeats.push_back({s, single - at});
      repeats.push_back({s, 1});
      at = single + 1;
    }
    if (at < run.segments[s].segment->repeat)
      repeats.push_back({s, run.segments[s].segment->repeat - at});
  }
  return repeats;
}

}  // namespace shardplan
