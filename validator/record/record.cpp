#include "record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "launch/median.h"
#include "record/disk_share.h"
#include "save/file.h"

namespace shardplan::validator {
namespace {

Json phases_json(const MemoryProfile& m) {
  const auto& f = m.of(Phase::forward);
  const auto& b = m.of(Phase::backward);
  const auto& s = m.of(Phase::step);
  return {{"model", m.of(Phase::model).end},
          {"forward_peak", f.peak},
          {"forward_end", f.end},
          {"backward_peak", b.peak},
          {"backward_end", b.end},
          {"step_peak", s.peak},
          {"step_end", s.end}};
}

Json categories_json(const CategoryBytes& bytes) {
  Json out = Json::object();
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (bytes[c] > 0) out[std::string(kCategoryNames[c])] = bytes[c];
  return out;
}

Json bytes_json(const SavedBytes& b) {
  return {{"device_peak", b.device_peak},
          {"staging", b.staging},
          {"shard", b.shard},
          {"whole", b.whole}};
}

/// What the last checkpoint took of a rank, and of the disk.
Json save_json(const RankReport& r) {
  Json out = bytes_json(r.save.bytes);
  out["dry_run"] = bytes_json(r.planned_save);
  if (r.rank != 0) return out;
  out["checkpoints"] = r.save.count;
  out["bytes"] = r.save.all_files;
  out["seconds"] = r.save.seconds;
  return out;
}

Json rank_json(const RankReport& r) {
  const auto& peak = r.measured.of(r.measured.peak_phase());
  Json overheads = Json::array();
  for (const Overhead& o : r.overheads)
    overheads.push_back({{"name", o.name}, {"category", name_of(o.category)}, {"bytes", o.bytes}});
  Json out{{"rank", r.rank},
           {"node", r.node},
           {"step_seconds", r.step_seconds},
           {"waited_seconds", r.waited_seconds},
           {"phases", phases_json(r.measured)},
           {"allocated_peak", r.measured.peak()},
           {"reserved", r.arena_bytes},
           {"device", r.device_bytes},
           {"resident", categories_json(r.measured.resident)},
           {"at_peak", categories_json(peak.at_peak)},
           {"dry_run", {{"phases", phases_json(r.planned)}, {"allocated_peak", r.planned.peak()}}},
           {"overheads", overheads}};
  if (r.save.count > 0) out["save"] = save_json(r);
  return out;
}

Json use_json(const std::string& how, const StorageUse& use) {
  return {{"io", how},
          {"read", use.read},
          {"written", use.written},
          {"busy_seconds", use.busy_seconds}};
}

/// What a rank that offloads holds of its host, and of a disk.
Json host_json(const RankReport& r) {
  Json out{{"pinned", r.host.pinned},
           {"pageable", r.host.pageable},
           {"resident_growth", r.host_growth},
           {"dry_run", {{"pinned", r.planned_host.pinned}, {"pageable", r.planned_host.pageable}}}};
  if (!r.host_compute.empty()) out["update"] = r.host_compute;
  if (r.host.nvme == 0) return out;
  out["nvme"] = use_json(r.storage, r.storage_use);
  out["nvme"].update({{"bytes", r.host.nvme}, {"dry_run", r.planned_host.nvme}});
  if (!r.direct.empty()) out["nvme"]["direct"] = use_json(r.direct, r.direct_use);
  return out;
}

/// Those after the warm-up. A run that went on may have made fewer than a whole one does not time.
std::span<const StepResult> timed_steps(const EngineJob& job,
                                        const std::vector<StepResult>& steps) {
  const auto warmup = std::min(job.run.warmup, std::max<std::int64_t>(std::ssize(steps) - 1, 0));
  return std::span(steps).subspan(static_cast<std::size_t>(warmup));
}

/// Whether experts have as many rows as they are given, so that some may have none.
bool may_be_idle(const EngineJob& job) {
  const auto* decoder = std::get_if<DecoderSpec>(&job.network);
  return decoder != nullptr && decoder->experts && job.expert_ranks() == 1 &&
         job.plan().framework.native.capacity_factor == 0;
}

/// Of a layer, in the mean over the steps that are timed.
double idle_experts(const EngineJob& job, const std::vector<StepResult>& steps) {
  double sum = 0;
  const auto timed = timed_steps(job, steps);
  for (const StepResult& s : timed) sum += s.idle_experts;
  return timed.empty() ? 0 : sum / static_cast<double>(timed.size());
}

Json step_json(const StepResult& s, bool drops) {
  Json step{{"loss", s.loss},
            {"gradient_norm", s.gradient_norm},
            {"learning_rate", s.learning_rate},
            {"loss_scale", s.loss_scale},
            {"skipped", s.skipped},
            {"seconds", s.seconds}};
  if (drops) step["dropped"] = s.dropped;
  return step;
}

}  // namespace

std::int64_t timed_count(const EngineJob& job, const std::vector<StepResult>& steps) {
  return std::ssize(timed_steps(job, steps));
}

double timed_seconds(const EngineJob& job, const std::vector<StepResult>& steps) {
  double sum = 0;
  for (const StepResult& s : timed_steps(job, steps)) sum += s.seconds;
  return sum;
}

double median_seconds(const EngineJob& job, const std::vector<StepResult>& steps) {
  std::vector<double> seconds;
  for (const StepResult& s : timed_steps(job, steps)) seconds.push_back(s.seconds);
  return median_of(std::move(seconds));
}

const RankReport& fullest_rank(const RunReport& report) {
  return *std::max_element(report.ranks.begin(), report.ranks.end(),
                           [](const RankReport& a, const RankReport& b) {
                             return a.measured.peak() < b.measured.peak();
                           });
}

Json make_record(const EngineJob& job, const RunReport& report, const Producer& producer,
                 const std::string& name) {
  const RankReport& worst = fullest_rank(report);
  const double seconds = median_seconds(job, report.steps);
  const Workload& w = job.plan().workload;
  const double tokens = static_cast<double>(job.make_network({})->rows() * w.gradient_accumulation *
                                            job.plan().replicas());
  Json environment{{"gpu", worst.device.name}, {"gpu_bytes", worst.device.capacity_bytes}};
  for (const auto& [what, version] : worst.device.versions) environment[what] = version;
  if (report.ranks_per_device > 1) environment["ranks_per_gpu"] = report.ranks_per_device;
  environment["command"] = producer.command;

  Json measured{{"parameters", job.job.model.parameter_count()},
                {"trainable_parameters", job.job.model.trainable_count()},
                {"rank", worst.rank},
                {"phases", phases_json(worst.measured)},
                {"allocated_peak", worst.measured.peak()},
                {"reserved", worst.arena_bytes}};
  // Ranks that share a GPU share its time and its memory: neither is a rank's.
  const bool shared = report.ranks_per_device > 1;
  if (!job.on_host() && !shared) measured["device"] = worst.device_bytes;
  if (worst.host.total() > 0) measured["host"] = host_json(worst);
  if (const auto share = disk_share(job, report)) {
    const DiskRate rate = *disk_rate(job, report);
    measured["host"]["nvme"]["of_own_rate"] = {{"read_bandwidth", rate.read},
                                               {"write_bandwidth", rate.write},
                                               {"timed", rate.timed},
                                               {"while_busy", share->busy},
                                               {"over_steps", share->steps}};
  }
  if (worst.save.count > 0) measured["save"] = save_json(worst);
  if (report.first_step > 0) measured["first_step"] = report.first_step;
  if (may_be_idle(job)) measured["idle_experts"] = idle_experts(job, report.steps);
  Json& times = shared ? measured["on_a_shared_gpu"] : measured;
  times["step_seconds"] = seconds;
  times["tokens_per_second"] = seconds > 0 ? tokens / seconds : 0;

  Json ranks = Json::array(), steps = Json::array();
  for (const RankReport& r : report.ranks) ranks.push_back(rank_json(r));
  for (const StepResult& s : report.steps)
    steps.push_back(step_json(s, job.plan().framework.native.capacity_factor > 0));
  return {{"schema", "shardplan.record/1"},
          {"name", name},
          {"job", job.document},
          {"producer",
           {{"program", "shardplan-validate"},
            {"version", producer.version},
            {"commit", producer.commit}}},
          {"environment", environment},
          {"measured", measured},
          {"ranks", ranks},
          {"steps", steps}};
}

void write_record(const Json& record, const std::string& path) {
  write_file(path, record.dump(1) + "\n");
}

}  // namespace shardplan::validator
