#include "record/disk_share.h"

#include <fmt/format.h>

#include <algorithm>

#include "record/record.h"

namespace shardplan::validator {
namespace {

/// Of all ranks of the first node. Ranks wait for each other in each step, so that the one that was
/// busy longest was so while the others were.
StorageUse use_of_node(const RunReport& report) {
  StorageUse sum;
  for (const RankReport& r : report.ranks) {
    if (r.node != report.ranks.front().node) continue;
    sum.read += r.storage_use.read + r.direct_use.read;
    sum.written += r.storage_use.written + r.direct_use.written;
    sum.busy_seconds =
        std::max({sum.busy_seconds, r.storage_use.busy_seconds, r.direct_use.busy_seconds});
  }
  return sum;
}

/// Of the timed steps alone: what is busy after them does not count.
StorageUse use_in_steps(const RunReport& report) {
  StorageUse sum;
  for (const RankReport& r : report.ranks) {
    if (r.node != report.ranks.front().node) continue;
    sum.read += r.use_in_steps.read;
    sum.written += r.use_in_steps.written;
  }
  return sum;
}

double seconds_at(const DiskRate& rate, const StorageUse& use) {
  return static_cast<double>(use.read) / rate.read + static_cast<double>(use.written) / rate.write;
}

std::optional<DiskRate> rate_of_cluster(const EngineJob& job) {
  const auto& nvme = job.plan().cluster.nvme;
  if (!nvme || !nvme->read_bandwidth || !nvme->write_bandwidth) return std::nullopt;
  return DiskRate{.read = *nvme->read_bandwidth, .write = *nvme->write_bandwidth};
}

}  // namespace

std::optional<DiskRate> disk_rate(const EngineJob& job, const RunReport& report) {
  if (!report.disk) return rate_of_cluster(job);
  const double share = report.disk->share_of_both();
  return DiskRate{report.disk->read * share, report.disk->write * share, true};
}

std::optional<DiskShare> disk_share(const EngineJob& job, const RunReport& report) {
  const auto rate = disk_rate(job, report);
  const StorageUse use = use_of_node(report);
  const double steps = timed_seconds(job, report.steps);
  if (!rate || use.busy_seconds <= 0 || steps <= 0) return std::nullopt;
  return DiskShare{seconds_at(*rate, use) / use.busy_seconds,
                   seconds_at(*rate, use_in_steps(report)) / steps};
}

std::optional<double> predicted_disk_share(const EngineJob& job, const Estimate& predicted,
                                           const RunReport& report) {
  const auto rate = rate_of_cluster(job);
  const double steps = static_cast<double>(timed_count(job, report.steps));
  if (!rate || steps <= 0 || predicted.time.step_seconds <= 0) return std::nullopt;
  return seconds_at(*rate, use_in_steps(report)) / (steps * predicted.time.step_seconds);
}

std::string disk_share_text(const EngineJob& job, const Estimate& predicted,
                            const RunReport& report) {
  const auto share = disk_share(job, report);
  if (!share) return "";
  const DiskRate rate = *disk_rate(job, report);
  const auto percent = [](double of) { return fmt::format("{:.1f} %", 100 * of); };
  const auto foreseen = predicted_disk_share(job, predicted, report);
  return fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", "of the disk's own rate", "predicted", "",
                     "measured") +
         fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", "while it was busy", "100.0 %", "",
                     percent(share->busy)) +
         fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", "over the steps",
                     foreseen ? percent(*foreseen) : "-", "", percent(share->steps)) +
         fmt::format("  that rate: {:.2f} GB/s read, {:.2f} written, {}\n", rate.read / 1e9,
                     rate.write / 1e9,
                     rate.timed ? "as timed before the run" : "as the job's cluster says");
}

}  // namespace shardplan::validator
