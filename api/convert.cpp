#include "convert.h"

#include <nlohmann/json.hpp>

#include "save/estimate.h"

namespace shardplan::api {
namespace {

Range range_of(const shardplan::Range& r) {
  return {r.least, r.point, r.upper};
}

Verdict verdict_of(shardplan::Fit fit) {
  switch (fit) {
    case shardplan::Fit::fits:
      return Verdict::fits;
    case shardplan::Fit::tight:
      return Verdict::tight;
    case shardplan::Fit::does_not_fit:
      return Verdict::does_not_fit;
    case shardplan::Fit::unknown:
      break;
  }
  return Verdict::unknown;
}

Room room_of(const ResourceVerdict& v) {
  return {verdict_of(v.fit), v.needed, v.available};
}

std::vector<Part> parts_of(const std::vector<CategoryLine>& breakdown) {
  std::vector<Part> parts;
  for (const CategoryLine& line : breakdown)
    parts.push_back({std::string(name_of(line.category)), line.resident, line.at_peak,
                     std::string(name_of(line.source))});
  return parts;
}

Time time_of(const TimeEstimate& t) {
  Time time;
  time.step_seconds = t.step_seconds;
  time.tokens_per_second = t.tokens_per_second;
  time.mfu = t.mfu;
  time.compute_seconds = t.compute_seconds;
  time.exposed_communication_seconds = t.exposed_communication_seconds;
  time.exposed_copy_seconds = t.exposed_copy_seconds;
  time.optimizer_seconds = t.optimizer_seconds;
  time.bubble_seconds = t.bubble_seconds;
  time.idle_seconds = t.idle_seconds;
  if (t.error)
    time.error = StepError{t.error->kind, t.error->runs, t.error->mean, t.error->largest};
  return time;
}

}  // namespace

Estimate to_public(const cli::JobAnswer& answer) {
  const shardplan::Estimate& e = answer.estimate;
  Estimate out;
  out.fits = e.verdict.fits;
  out.limited_by = e.verdict.limited_by;
  out.gpu = room_of(e.verdict.gpu);
  out.host = room_of(e.verdict.host);
  out.nvme = room_of(e.verdict.nvme);
  out.model = answer.job.model.facts.name;
  out.parameters = e.parameters;
  out.trainable_parameters = e.trainable_parameters;
  out.capacity_bytes = e.capacity_bytes;
  out.usable_bytes = e.usable_bytes;
  out.allocated = range_of(e.allocated);
  out.reserved = range_of(e.reserved);
  out.device = range_of(e.device);
  out.peak_phase = name_of(e.peak_phase);
  out.parts = parts_of(e.breakdown);
  out.time = time_of(e.time);
  for (const Diagnostic& d : answer.job.diagnostics) out.warnings.push_back(to_string(d));
  out.assumed = answer.job.assumed;
  out.json = to_json(answer).dump(2, ' ', false, Json::error_handler_t::replace);
  return out;
}

std::vector<Fix> to_public(const std::vector<shardplan::Fix>& fixes) {
  std::vector<Fix> out;
  for (const shardplan::Fix& fix : fixes) {
    Fix& one = out.emplace_back();
    for (const shardplan::Change& change : fix.changes)
      one.changes.push_back({change.what, change.how});
    one.saved_bytes = fix.gpu_saved;
    one.slowdown = fix.slowdown;
    one.fits = fix.after.verdict.fits;
    one.device_bytes = fix.after.device.point;
  }
  return out;
}

Error public_error(const Diagnostic& d) {
  return {to_string(d),
          {d.file, d.key, d.message.text, d.expected.text, d.nearest, d.position.line,
           d.position.column}};
}

}  // namespace shardplan::api
