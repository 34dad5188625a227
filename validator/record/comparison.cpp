#include "record/comparison.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/format.h"
#include "record/disk_share.h"
#include "record/record.h"

namespace shardplan::validator {
namespace {

struct FigureRow {
  std::string name;
  std::int64_t predicted = 0, planned = 0;
  std::optional<std::int64_t> measured;
};

/// What is alive between steps by category, then the phases, then the whole.
struct Rows {
  std::vector<FigureRow> categories, phases;
  FigureRow peak;
  std::vector<FigureRow> host;  ///< of jobs that offload
};

/// The breakdown counts gradients "once all of them exist", which for this engine is always.
Rows rows_of(const EngineJob& job, const Estimate& e, const RunReport& report) {
  const bool ran = !report.steps.empty();
  const RankReport& r = ran ? fullest_rank(report) : report.ranks.front();
  const MemoryProfile& plan = r.planned;
  const MemoryProfile& real = r.measured;
  const auto measured = [&](std::int64_t bytes) {
    return ran ? std::optional(bytes) : std::nullopt;
  };
  Rows rows;
  const Phase at = plan.peak_phase();
  for (const CategoryLine& line : e.breakdown) {
    const std::size_t c = index_of(line.category);
    const bool outside = line.category == Category::fragmentation ||
                         line.category == Category::cuda_context || line.category == Category::nccl;
    const std::int64_t planned = plan.of(at).at_peak[c];
    if (outside || (line.at_peak == 0 && planned == 0)) continue;
    rows.categories.push_back({std::string(name_of(line.category)), line.at_peak, planned,
                               measured(real.of(real.peak_phase()).at_peak[c])});
  }
  const auto add = [&](std::string name, std::int64_t predicted, std::int64_t planned,
                       std::int64_t real_bytes) {
    rows.phases.push_back({std::move(name), predicted, planned, measured(real_bytes)});
  };
  add("model", e.model_bytes, plan.of(Phase::model).end, real.of(Phase::model).end);
  constexpr std::array<Phase, 3> kPhases{Phase::forward, Phase::backward, Phase::step};
  for (std::size_t p = 0; p < kPhases.size(); ++p) {
    const std::string name(kPhaseNames[p + 1]);
    add(name + " peak", e.phases[p].peak, plan.of(kPhases[p]).peak, real.of(kPhases[p]).peak);
    add(name + " end", e.phases[p].end, plan.of(kPhases[p]).end, real.of(kPhases[p]).end);
  }
  // A save takes values from where they lie between steps.
  if (job.run.save.wanted())
    add("save peak", e.phases[kPhases.size() - 1].end, r.planned_save.device_peak,
        r.save.bytes.device_peak);
  rows.peak = {"peak", e.allocated.point, plan.peak(), measured(real.peak())};
  if (r.planned_host.total() == 0) return rows;
  const std::int64_t ranks = job.plan().cluster.gpus_per_node;
  rows.host = {{"host, pinned", e.host_per_node.pinned / ranks, r.planned_host.pinned,
                measured(r.host.pinned)},
               {"host, pageable", e.host_per_node.pageable / ranks, r.planned_host.pageable,
                measured(r.host.pageable)}};
  if (r.planned_host.nvme > 0)
    rows.host.push_back(
        {"NVMe", e.host_per_node.nvme / ranks, r.planned_host.nvme, measured(r.host.nvme)});
  return rows;
}

std::string line_of(const FigureRow& row) {
  const std::int64_t truth = row.measured.value_or(row.planned);
  std::string delta = "exact";
  if (row.predicted != truth && truth > 0)
    delta = fmt::format("{:+.2f} %", 100.0 * static_cast<double>(row.predicted - truth) /
                                         static_cast<double>(truth));
  if (row.predicted != truth && truth == 0) delta = "only predicted";
  return fmt::format("  {:<24}{:>14}{:>14}{:>14}   {}\n", row.name, format_bytes(row.predicted),
                     format_bytes(row.planned), row.measured ? format_bytes(*row.measured) : "-",
                     delta);
}

std::string use_text(std::string_view what, const std::string& how, const StorageUse& use) {
  const auto bytes = static_cast<double>(use.read + use.written);
  return fmt::format("\n  {}: {}\n  read {}, wrote {} at {:.2f} GB/s while it was busy\n", what,
                     how, format_bytes(use.read), format_bytes(use.written),
                     use.busy_seconds > 0 ? bytes / use.busy_seconds / 1e9 : 0);
}

/// What the GPU could have done at its datasheet's rates, with everything hidden that can be,
/// beside what it did. Nothing of jobs without a time.
std::string speed_text(const TimeEstimate& time, double seconds,
                       const std::array<double, 3>& phases) {
  if (time.step_seconds <= 0 || seconds <= 0) return "";
  const auto share = [](double of) { return fmt::format("{:.1f} %", 100 * of); };
  std::string text = fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", "of the fastest possible",
                                 share(time.speed_of_light_seconds / time.step_seconds), "",
                                 share(time.speed_of_light_seconds / seconds)) +
                     fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", "MFU", share(time.mfu), "",
                                 share(time.mfu * time.step_seconds / seconds)) +
                     fmt::format("  the fastest possible: {} at the datasheet's rates\n",
                                 format_seconds(time.speed_of_light_seconds));
  if (phases[0] <= 0) return text;
  constexpr std::array<const char*, 3> kDone{"forward, loss and head", "backward",
                                             "clipping and optimizer"};
  text += fmt::format("\n  {:<24}{:>14}{:>14}{:>14}\n", "phases of a step apart", "at best", "took",
                      "share");
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const double least = time.speed_of_light_of_phases[p];
    text += fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", kDone[p], format_seconds(least),
                        format_seconds(phases[p]), phases[p] > 0 ? share(least / phases[p]) : "");
  }
  text += "  at best: its kernels at the datasheet's rates, and nothing else\n";
  return text;
}

Json json_of(const FigureRow& row) {
  Json out{{"predicted", row.predicted}, {"dry_run", row.planned}};
  if (row.measured) out["measured"] = *row.measured;
  return out;
}

}  // namespace

std::string comparison_text(const EngineJob& job, const Estimate& e, const RunReport& report) {
  const Rows rows = rows_of(job, e, report);
  std::string text = fmt::format("  {:<24}{:>14}{:>14}{:>14}   {}\n", "memory of a rank",
                                 "predicted", "dry run", "measured", "prediction");
  for (const FigureRow& row : rows.categories) text += line_of(row);
  text += line_of(rows.peak) + "\n";
  for (const FigureRow& row : rows.phases) text += line_of(row);
  if (!rows.host.empty()) text += "\n";
  for (const FigureRow& row : rows.host) text += line_of(row);
  if (report.steps.empty()) return text;
  const RankReport& worst = fullest_rank(report);
  const double seconds = median_seconds(job, report.steps);
  if (!worst.storage.empty()) {
    text += use_text("NVMe", worst.storage, worst.storage_use);
    if (!worst.direct.empty())
      text += use_text("NVMe to the device", worst.direct, worst.direct_use);
    text += disk_share_text(job, e, report);
  }
  if (job.on_host()) return text + fmt::format("\n  {} per step\n", format_seconds(seconds));
  text += "\n";
  for (const Overhead& o : worst.overheads)
    text += fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", o.name, "", "", format_bytes(o.bytes));
  if (report.ranks_per_device > 1)
    return text + fmt::format(
                      "  {} per step of {} ranks that share a GPU; {} is predicted for a GPU "
                      "each\n",
                      format_seconds(seconds), report.ranks_per_device,
                      format_seconds(e.time.step_seconds));
  text += fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", "device", format_bytes(e.device.point), "",
                      format_bytes(worst.device_bytes));
  text += fmt::format("  {:<24}{:>14}{:>14}{:>14}\n", "step", format_seconds(e.time.step_seconds),
                      "", format_seconds(seconds));
  return text + speed_text(e.time, seconds, worst.phase_seconds);
}

Json comparison_json(const EngineJob& job, const Estimate& e, const RunReport& report) {
  const Rows rows = rows_of(job, e, report);
  Json categories = Json::object(), phases = Json::object(), host = Json::object();
  for (const FigureRow& row : rows.host) host[row.name] = json_of(row);
  for (const FigureRow& row : rows.categories) categories[row.name] = json_of(row);
  for (const FigureRow& row : rows.phases) phases[row.name] = json_of(row);
  Json out{{"categories", categories}, {"phases", phases}, {"peak", json_of(rows.peak)}};
  if (!host.empty()) out["host"] = host;
  return out;
}

}  // namespace shardplan::validator
