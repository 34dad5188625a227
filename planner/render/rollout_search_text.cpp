#include "render/rollout_search_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "job/fields.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/table.h"
#include "save/estimate.h"

namespace shardplan {
namespace {

double seconds_of(const Estimate& e, Phase phase) {
  double sum = 0;
  for (const TimeEstimate::PhaseTime& p : e.time.phases)
    if (p.phase == phase) sum += p.seconds;
  return sum;
}

std::string time_of(double seconds) {
  return seconds > 0 ? format_seconds(seconds) : "-";
}

/// "workload.rollout.sleep_level", as errors name it.
std::string key_of(const FieldEdit& edit) {
  std::string key = edit.pointer.substr(1);
  std::ranges::replace(key, '/', '.');
  return key;
}

/// What a job says that leaves the field out; nothing where that is not one value.
bool says_nothing_new(const FieldEdit& edit, const Json& written) {
  const auto before = field_of(written, edit.pointer);
  if (before) return *before == edit.value;
  if (edit.value.is_null()) return true;
  static const Json defaults{{"/workload/micro_batch", 1},
                             {"/workload/gradient_accumulation", 1},
                             {"/workload/rollout/placement", "colocated"},
                             {"/workload/rollout/tensor_parallel", 1},
                             {"/workload/rollout/sleep_level", 0},
                             {"/workload/models/actor/idle", "gpu"}};
  return defaults.contains(edit.pointer) && defaults.at(edit.pointer) == edit.value;
}

std::string words_of(const GpuSharing& s) {
  if (s.place == nullptr) return "the trainer's own model";
  if (s.engine_gpus == 0) return "on the trainer's GPUs";
  return fmt::format("on {} of the GPUs, {}", format_count(s.engine_gpus),
                     s.behind == 0 ? "in turns" : fmt::format("{} behind", format_count(s.behind)));
}

/// A cluster as a command line names it.
std::string gpus_of(const Json& cluster) {
  const auto nodes = cluster.at("nodes").get<std::int64_t>();
  return fmt::format("{}{}x{}", nodes > 1 ? fmt::format("{}x", nodes) : "",
                     cluster.at("gpus_per_node").get<std::int64_t>(),
                     cluster.at("gpu").get<std::string>());
}

std::string lines_to_write(const RolloutChoice& best, const Json& written) {
  std::string text;
  for (const FieldEdit& edit : best.fields) {
    if (says_nothing_new(edit, written)) continue;
    const std::string value = edit.value.is_null()     ? "leave it out"
                              : edit.value.is_object() ? gpus_of(edit.value)
                                                       : edit.value.dump();
    text += wrapped(fmt::format("{}: {}", key_of(edit), value), "  ", "    ");
  }
  return text.empty() ? "Write\n  nothing else: the job is so\n" : "Write\n" + text;
}

void add_row(TextTable& table, std::string mark, const GpuSharing& s, std::string batch,
             std::string degree, std::string share, const Estimate& e) {
  const bool shared = s.place != nullptr && s.place->can_sleep;
  table.add({std::move(mark), words_of(s), shared ? format_count(s.sleep) : "-",
             std::string(name_of(s.actor)), std::move(batch), std::move(degree), std::move(share),
             format_bytes(e.device.upper), format_bytes(e.verdict.host.needed),
             time_of(e.time.step_seconds), time_of(seconds_of(e, Phase::generation))});
}

std::string table_of(const RolloutFound& found, std::size_t rows) {
  TextTable table({Align::left, Align::left, Align::right, Align::left, Align::left, Align::right,
                   Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add({"", "answers come from an engine", "sleep", "actor idle", "batch", "TP", "share",
             "GPU, bound", "host", "iteration", "waits for answers"});
  for (std::size_t i = 0; i < std::min(rows, found.choices.size()); ++i) {
    const RolloutChoice& c = found.choices[i];
    const bool shares = c.point.sharing.place != nullptr && c.point.sharing.place->shares_gpus;
    add_row(table, i == 0 ? ">" : "", c.point.sharing,
            fmt::format("{} x {}", c.point.micro, c.point.accumulation),
            c.point.sharing.place == nullptr ? "-" : format_count(c.point.tensor),
            shares ? fmt::format("{:.2f}", static_cast<double>(c.hundredths) / 100) : "-",
            c.estimate);
  }
  return table.text();
}

std::string compared(const RolloutFound& found) {
  if (!found.asked) return "; the engine of the job as asked has no room";
  const double before = found.asked->time.step_seconds;
  const double after = found.choices.front().estimate.time.step_seconds;
  if (!found.asked->verdict.fits) return "; the job as asked does not fit";
  if (before <= after * 1.005) return "; the job as asked is as fast";
  return fmt::format("; the job as asked takes {}", format_seconds(before));
}

std::string nothing_text(const Job& job, const Json& written, const RolloutFound& found) {
  std::string text =
      subject(job) + fmt::format("\nNone of {} ways fits\n", format_count(found.tried));
  if (!found.closest) return text + "In none of them has the engine room for a sequence\n";
  const RolloutChoice& c = *found.closest;
  const char* const engine = c.point.sharing.place == nullptr ? "" : "an engine ";
  return text + "\nThe one that comes closest: answers come from " + engine +
         words_of(c.point.sharing) + "\n" + resource_lines(c.estimate) + "\n" +
         lines_to_write(c, written) +
         "\n  `shardplan estimate` with these fields says what would change its verdict\n";
}

}  // namespace

std::string rollout_search_text(const Job& job, const Json& written, const RolloutFound& found,
                                std::size_t rows) {
  if (found.choices.empty()) return nothing_text(job, written, found);
  const RolloutChoice& best = found.choices.front();
  std::string text = subject(job) + "\n";
  text += wrapped(
      fmt::format("The fastest that fits, of {}: {} an iteration{}", format_count(found.tried),
                  format_seconds(best.estimate.time.step_seconds), compared(found)),
      "", "  ");
  text += "\n" + lines_to_write(best, written);
  text += "\nThe best of each way to share the GPUs\n" + table_of(found, rows);
  return text +
         "\n  batch: micro-batch x accumulation, as many samples in all; TP: GPUs of an engine\n"
         "  share: the least of a GPU with which the engine is as fast as with any that fits\n"
         "  host: of each machine, which is not held against it where what it has is not known\n"
         "  behind: the engine answers while the trainer trains, which changes what is trained on; "
         "last\n"
         "  errors of published iterations: docs/evidence/measurements.md, NeMo RL's performance "
         "summary\n" +
         (best.estimate.time.error ? error_line(best.estimate.time) : "");
}

namespace {

Json choice_json(const RolloutChoice& c) {
  Json fields = Json::object();
  for (const FieldEdit& edit : c.fields) fields[edit.pointer] = edit.value;
  const auto& error = c.estimate.time.error;
  return {{"error", error ? step_error_json(*error) : Json()},
          {"fields", std::move(fields)},
          {"iteration_seconds", c.estimate.time.step_seconds},
          {"generation_seconds", seconds_of(c.estimate, Phase::generation)},
          {"device_bytes", c.estimate.device.point},
          {"device_upper_bytes", c.estimate.device.upper},
          {"host_bytes", c.estimate.verdict.host.needed}};
}

}  // namespace

Json rollout_search_json(const RolloutFound& found) {
  Json list = Json::array();
  for (const RolloutChoice& c : found.choices) list.push_back(choice_json(c));
  return {{"tried", found.tried},
          {"asked_iteration_seconds", found.asked ? Json(found.asked->time.step_seconds) : Json()},
          {"asked_fits", found.asked && found.asked->verdict.fits},
          {"choices", std::move(list)},
          {"closest", found.closest ? choice_json(*found.closest) : Json()}};
}

}  // namespace shardplan
