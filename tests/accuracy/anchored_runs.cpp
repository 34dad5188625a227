#include "anchored_runs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "frameworks/registry.h"
#include "load/hardware.h"
#include "load/record.h"
#include "published_cluster_jobs.h"
#include "published_layout_jobs.h"
#include "published_speed_jobs.h"
#include "trainers/description.h"

namespace shardplan::anchored {
namespace {

const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}

Json published(const std::string& name) {
  return read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/" + name + ".json");
}

/// Which records were made on one machine in one sitting: the same commit added them, and their
/// environments name the same GPU, driver and number of CPUs. A host's pace differs between
/// sittings as much as within one (docs/explanation/time.md, "One measured step").
class Sittings {
 public:
  Sittings() {
    const Json provenance = read_json_file(kMeasurements + "provenance.json");
    for (const auto& [commit, names] : provenance.at("added").items())
      for (const Json& name : names) added_[name.get<std::string>()] = commit;
  }

  std::string of(const std::string& file) const {
    const std::filesystem::path path =
        std::filesystem::path(file).lexically_relative(kMeasurements);
    const Json environment = read_json_file(file).at("environment");
    const auto text = [&](const char* key) {
      return environment.contains(key) ? environment.at(key).dump() : "unknown";
    };
    return added_.at((path.parent_path() / path.stem()).string()).substr(0, 8) + ", " +
           text("gpu") + ", driver " + text("driver") + ", CPUs " + text("cpus");
  }

 private:
  inline static const std::string kMeasurements = SHARDPLAN_SOURCE_DIR "/data/measurements/";
  std::map<std::string, std::string> added_;
};

class Collection {
 public:
  explicit Collection(const Calibration& calibration) : calibration_(calibration) {}

  void add_records() {
    const Sittings sittings;
    for (Record& r :
         load_records({SHARDPLAN_SOURCE_DIR "/data/measurements/training"}, hardware()).records) {
      const auto seconds = r.measured[index_of(Figure::step_seconds)];
      if (!seconds || *seconds <= 0) continue;
      const Estimate e = estimate_of(r.job);
      add({group_of(r.job.plan, e) + ", " + sittings.of(r.file), r.name, std::move(r.job),
           *seconds});
    }
  }

  void add_llmq() {
    const Json table = published("llmq_speed");
    for (const Json& row : table.at("rows")) {
      Job job = job_of(llmq_job(row));
      const StepTokens step(job.plan);
      add({"published: llmq, " + row[0].get<std::string>(), row.dump(), std::move(job),
           step.tokens / row[6].get<double>()});
    }
  }

  void add_zero_offload() {
    const Json table = published("zero_offload_speed");
    for (const Json& row : table.at("rows")) {
      Job job = job_of(offload_job(row));
      const Estimate e = estimate_of(job);
      const double tflops = e.time.mfu * *job.plan.cluster.gpu.peak[PeakRate::fp16] / 1e12;
      add({"published: ZeRO-Offload, V100, GPUs " + row[4].dump(), row.dump(), std::move(job),
           e.time.step_seconds * tflops / row[5].get<double>()});
    }
  }

  void add_clusters() {
    for (const Json& cells : published_clusters::table().at("rows")) {
      const published_clusters::Row row(cells);
      if (row.text("precision") != "bf16") continue;
      add({"published: DGX Cloud, " + row.family(), cells.dump(),
           job_of(published_clusters::job_of(row)), row.at<double>("seconds")});
    }
  }

  void add_layouts() {
    const Json table = published("parallel_layouts");
    for (const Json& row : table.at("sc21_table1").at("rows")) {
      const auto n = [&](std::size_t i) { return row[i].get<std::int64_t>(); };
      const published_layouts::Layout layout{n(1), n(2), n(3), 51'200, n(4), n(5),
                                             n(6), n(7), n(8), n(9),   false};
      const double rate = row[10].get<double>() * 1e12 * static_cast<double>(layout.gpus);
      add({"published: Megatron-LM 2021, A100", row[0].dump(),
           job_of(published_layouts::job_of(layout)), layout.flops() / rate});
    }
  }

  Groups groups() {
    Groups all;
    for (auto& [name, runs] : groups_) {
      std::ranges::sort(runs, {}, &MeasuredRun::name);
      if (runs.size() >= 2) all.push_back(std::move(runs));
    }
    return all;
  }

 private:
  struct StepTokens {
    explicit StepTokens(const Plan& plan)
        : tokens(static_cast<double>(plan.samples_at_once()) *
                 static_cast<double>(plan.workload.gradient_accumulation) *
                 static_cast<double>(plan.workload.sequence_length)) {}
    double tokens;
  };

  static Job job_of(const Json& json) { return load_job(json, "published", {&hardware(), ""}); }

  Estimate estimate_of(const Job& job) const {
    return estimate(job.model, job.plan, calibration_, ReservedMemory::ratio);
  }

  static std::string group_of(const Plan& plan, const Estimate& e) {
    std::string group = step_kind(plan) + ", " + std::string(plan.trainer->name) + ", " +
                        std::to_string(plan.cluster.world()) + " x " + plan.cluster.gpu.name;
    if (plan.compile) group += ", compiled";
    if (e.host_per_node.pinned + e.host_per_node.pageable > 0) group += ", offload";
    return group;
  }

  void add(MeasuredRun run) {
    run.predicted = estimate_of(run.job).time.step_seconds;
    run.fitted = run.job.plan.cluster.gpu.arch == calibration_.arch;
    if (run.predicted > 0) groups_[run.group].push_back(std::move(run));
  }

  const Calibration& calibration_;
  std::map<std::string, std::vector<MeasuredRun>> groups_;
};

std::vector<const MeasuredRun*> chosen(const std::vector<MeasuredRun>& group) {
  const std::size_t count = std::min(kMostRuns, group.size());
  std::vector<const MeasuredRun*> runs;
  for (std::size_t i = 0; i < count; ++i) runs.push_back(&group[i * group.size() / count]);
  return runs;
}

}  // namespace

Groups groups_of_runs(const Calibration& calibration) {
  Collection all(calibration);
  all.add_records();
  all.add_llmq();
  all.add_zero_offload();
  all.add_clusters();
  all.add_layouts();
  return all.groups();
}

Errors errors_of(const std::vector<MeasuredRun>& group, const Calibration& calibration) {
  const std::vector<const MeasuredRun*> runs = chosen(group);
  Errors errors;
  for (const MeasuredRun* anchor : runs) {
    Calibration corrected = calibration;
    corrected.time = slowed_down(calibration.time,
                                 explained_by_step(anchor->job, calibration, anchor->measured));
    for (const MeasuredRun* run : runs) {
      if (run == anchor) continue;
      const Estimate e = estimate(run->job.model, run->job.plan, corrected, ReservedMemory::ratio);
      errors.as_predicted += std::abs(run->predicted / run->measured - 1);
      errors.anchored += std::abs(e.time.step_seconds / run->measured - 1);
    }
  }
  const auto pairs = static_cast<double>(runs.size() * (runs.size() - 1));
  return {errors.as_predicted / pairs, errors.anchored / pairs};
}

}  // namespace shardplan::anchored
