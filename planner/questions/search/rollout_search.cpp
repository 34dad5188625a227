#include "questions/search/rollout_search.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "job/fields.h"
#include "questions/estimate_job.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostHundredths = 95;
/// Iterations that differ by less take as long.
constexpr double kAsLong = 1.002;

class RolloutSearch {
 public:
  RolloutSearch(const Json& written, const RolloutSpace& space, const Calibration& calibration,
                const std::function<Job(const Json&)>& load)
      : written_(written), space_(space), calibration_(calibration), load_(load) {}

  std::optional<RolloutChoice> best_of(const GpuSharing& sharing) {
    std::optional<RolloutChoice> best;
    for (const RolloutPoint& point : space_.points(sharing)) {
      auto choice = best_share(point, best ? best->estimate.time.step_seconds : 0);
      if (choice) best = std::move(choice);
    }
    return best;
  }
  std::int64_t tried() const { return tried_; }
  std::optional<RolloutChoice> closest() { return std::move(closest_); }

 private:
  /// Nothing where the engine has no room for a sequence, or the job cannot be so.
  std::optional<RolloutChoice> ask(const RolloutPoint& point, std::int64_t hundredths) {
    RolloutChoice choice{point, hundredths, space_.fields(point, hundredths), {}};
    Json job = written_;
    for (const FieldEdit& edit : choice.fields) set_field(job, edit.pointer, edit.value);
    ++tried_;
    try {
      choice.estimate = estimate_job(load_(job), calibration_);
    } catch (const InputError&) {
      return std::nullopt;
    } catch (const OverflowError&) {
      return std::nullopt;
    }
    const std::int64_t lacks = lacking(choice.estimate);
    if (lacks > 0 && (!closest_ || lacks < lacking(closest_->estimate))) closest_ = choice;
    return choice;
  }

  /// Bytes of a GPU and of a host that are missing, by the bound that decides.
  static std::int64_t lacking(const Estimate& e) {
    const ResourceVerdict& host = e.verdict.host;
    const std::int64_t of_host = host.available ? host.needed - *host.available : 0;
    return std::max<std::int64_t>(0, e.device.upper - e.usable_bytes) +
           std::max<std::int64_t>(0, of_host);
  }

  static bool fits(const RolloutChoice& choice) {
    return choice.estimate.verdict.gpu.fit == Fit::fits && choice.estimate.verdict.fits;
  }
  static double seconds(const RolloutChoice& choice) { return choice.estimate.time.step_seconds; }

  /// More of a GPU is a larger cache, which takes no longer, until the trainer lacks it.
  std::optional<RolloutChoice> best_share(const RolloutPoint& point, double faster_than) {
    const bool shares = point.sharing.place != nullptr && point.sharing.place->shares_gpus;
    std::optional<RolloutChoice> most =
        ask(point, space_.own_share(point.sharing).value_or(kMostHundredths));
    const auto slower = [&](const RolloutChoice& c) {
      return seconds(c) <= 0 || (faster_than > 0 && seconds(c) * kAsLong >= faster_than);
    };
    if (!most || slower(*most)) return std::nullopt;
    if (!fits(*most)) most = shares ? largest_that_fits(point) : std::nullopt;
    if (!most || slower(*most)) return std::nullopt;
    return shares ? least_as_fast(point, std::move(*most)) : most;
  }

  std::optional<RolloutChoice> largest_that_fits(const RolloutPoint& point) {
    std::optional<RolloutChoice> best;
    std::int64_t low = 0, high = kMostHundredths;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      auto choice = ask(point, middle);
      const bool too_much = choice && !fits(*choice);
      (too_much ? high : low) = middle;
      if (choice && !too_much) best = std::move(choice);
    }
    return best;
  }

  RolloutChoice least_as_fast(const RolloutPoint& point, RolloutChoice best) {
    const double most = seconds(best) * kAsLong;
    std::int64_t low = 0, high = best.hundredths;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      auto choice = ask(point, middle);
      const bool enough = choice && fits(*choice) && seconds(*choice) <= most;
      (enough ? high : low) = middle;
      if (enough) best = std::move(*choice);
    }
    return best;
  }

  const Json& written_;
  const RolloutSpace& space_;
  const Calibration& calibration_;
  const std::function<Job(const Json&)>& load_;
  std::int64_t tried_ = 0;
  std::optional<RolloutChoice> closest_;
};

/// Of those that take as long, to half a per cent of the fastest, the one that needs least first;
/// behind all others those that train on older answers than the job does.
void sort_by_time_and_room(std::vector<RolloutChoice>& all) {
  if (all.empty()) return;
  constexpr double kStep = 0.005;
  const auto seconds = [](const RolloutChoice& c) { return c.estimate.time.step_seconds; };
  const double fastest = seconds(*std::ranges::min_element(all, {}, seconds));
  std::ranges::stable_sort(all, {}, [&](const RolloutChoice& c) {
    return std::tuple(c.point.sharing.further_behind,
                      std::floor((seconds(c) / fastest - 1) / kStep), c.estimate.device.upper);
  });
}

}  // namespace

RolloutFound search_rollouts(const Json& written, const RolloutSpace& space,
                             const Calibration& calibration,
                             const std::function<Job(const Json&)>& load) {
  RolloutFound found;
  try {
    found.asked = estimate_job(load(written), calibration);
  } catch (const InputError&) {  // `job` is as near to it as can be loaded
  }
  RolloutSearch search(written, space, calibration, load);
  for (const GpuSharing& sharing : space.sharings())
    if (auto best = search.best_of(sharing)) found.choices.push_back(std::move(*best));
  sort_by_time_and_room(found.choices);
  found.tried = search.tried();
  if (found.choices.empty()) found.closest = search.closest();
  return found;
}

}  // namespace shardplan
