#include "lowering/deepspeed/buckets.h"

#include <algorithm>

namespace shardplan {

std::vector<std::int32_t> gradient_uses(const Model& model, const ModelRun& run) {
  std::vector<std::int32_t> uses(model.parameters.size(), 0);
  for (const SegmentRun& s : run.segments)
    for (const TapeEvent& e : s.backward.backward)
      if (e.kind == TapeEvent::Kind::gradient) ++uses[static_cast<std::size_t>(e.id)];
  return uses;
}

BucketSchedule schedule_buckets(const Model& model, const ModelRun& run, std::int64_t capacity,
                                const std::function<bool(ParameterId, std::int64_t)>& owns) {
  BucketSchedule schedule;
  std::vector<std::int32_t> left = gradient_uses(model, run);
  std::int64_t filled = 0;
  bool owned = false;
  const auto flush = [&](const BackwardPlace& place) {
    ++schedule.flushes;
    if (!schedule.first_flush) {
      schedule.first_flush = place;
      schedule.first_elements = filled;
    }
    if (owned && !schedule.first_own) schedule.first_own = place;
    filled = 0;
    owned = false;
  };
  for (std::size_t s = run.segments.size(); s-- > 0;) {
    const SegmentRun& segment = run.segments[s];
    const std::int64_t repeat = segment.segment->repeat;
    for (std::int64_t i = 0; i < repeat; ++i) {
      for (const TapeEvent& e : segment.backward.backward) {
        if (e.kind != TapeEvent::Kind::gradient) continue;
        auto& uses = left[static_cast<std::size_t>(e.id)];
        if (uses > 1) {
          --uses;
          continue;
        }
        if (!schedule.first_gradient) schedule.first_gradient = BackwardPlace{s, i, e.id};
        const std::int64_t numel = model.parameters[static_cast<std::size_t>(e.id)].numel;
        if (filled > 0 && filled + numel > capacity) flush({s, i, e.id});
        filled += numel;
        owned = owned || owns(e.id, repeat - 1 - i);
      }
    }
  }
  if (filled > 0) {
    ++schedule.flushes;
    if (!schedule.first_flush) schedule.first_elements = filled;
  }
  return schedule;
}

std::vector<Stretch> cut_backward(const ModelRun& run,
                                  const std::vector<std::optional<BackwardPlace>>& cuts) {
  std::vector<Stretch> stretches;
  for (std::size_t s = run.segments.size(); s-- > 0;) {
    std::vector<std::int64_t> singles;
    for (const auto& cut : cuts)
      if (cut && cut->segment == s) singles.push_back(cut->iteration);
    std::sort(singles.begin(), singles.end());
    singles.erase(std::unique(singles.begin(), singles.end()), singles.end());
    std::int64_t at = 0;
    for (const std::int64_t single : singles) {
      if (single > at) stretches.push_back({s, single - at});
      stretches.push_back({s, 1});
      at = single + 1;
    }
    if (at < run.segments[s].segment->repeat)
      stretches.push_back({s, run.segments[s].segment->repeat - at});
  }
  return stretches;
}

}  // namespace shardplan
