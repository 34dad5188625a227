#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/job_options.h"
#include "load/hardware.h"
#include "load/machine.h"
#include "load/record.h"
#include "logs/log.h"
#include "questions/anchor.h"
#include "questions/estimate_job.h"
#include "render/estimate_text.h"
#include "render/table.h"

namespace shardplan::cli {
namespace {

/// A log of a long run.
constexpr std::size_t kLargestLog = 500'000'000;

struct AnchorArguments {
  std::string log;
  JobOptions job;
  CalibrationOption calibration;
  Output output;
};

/// What a file says of a run, and the job that it is about.
struct AnchorRun {
  Job job;
  MeasuredStep measured;
  std::string how;  ///< "a torchtitan log, median of 12 entries, the first 2 left out"
};

std::optional<std::int64_t> bytes_of(const Record& record, Figure figure) {
  const auto value = record.measured[index_of(figure)];
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

AnchorRun found_in_record(const AnchorArguments& a, const std::string& text) {
  if (!a.job.files.empty() || !a.job.of_flags().empty())
    throw InputError({.file = a.log,
                      .message = "a record holds its own job, and another was given",
                      .expected = "shardplan anchor RECORD"});
  RecordList list = read_records(text, a.log, load_hardware_catalog());
  if (!list.bad.empty()) throw InputError(list.bad.front());
  if (list.records.size() != 1)
    throw InputError({.file = a.log,
                      .message = fmt::format("{} records", list.records.size()),
                      .expected = "a file with one"});
  Record& record = list.records.front();
  const auto seconds = record.measured[index_of(Figure::step_seconds)];
  if (!seconds || *seconds <= 0)
    throw InputError({.file = a.log,
                      .key = "measured.step_seconds",
                      .message = "is missing",
                      .expected = "the seconds of a step"});
  return {std::move(record.job),
          {*seconds, bytes_of(record, Figure::allocated_peak), bytes_of(record, Figure::reserved),
           bytes_of(record, Figure::device)},
          "a record"};
}

AnchorRun found_in_log(const AnchorArguments& a, const std::string& text) {
  if (a.job.files.empty() && a.job.of_flags().empty())
    throw InputError({.file = a.log,
                      .message = "a log does not say what its job was",
                      .expected = "shardplan anchor LOG JOB"});
  Job job = a.job.load(a.job.merged());
  const logs::RunLog run = logs::read_log(text, a.log, logs::step_size(job.plan));
  return {std::move(job),
          {run.step_seconds, run.memory.allocated, run.memory.reserved, {}},
          run.kind + ", " + how_counted(run)};
}

bool is_record(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() && (json.contains("measured") || json.contains("records"));
}

std::string compared(double measured, double predicted, const char* more, const char* less) {
  const double percent = 100 * (measured / predicted - 1);
  return fmt::format("{:.1f} % {}", std::abs(percent), percent < 0 ? less : more);
}

std::string measured_table(const AnchorRun& found, const Anchor& anchor, const Estimate& before) {
  TextTable table({Align::left, Align::right, Align::right, Align::left});
  table.add({"", "measured", "predicted", ""});
  table.add({"a step", format_seconds(anchor.measured_seconds),
             format_seconds(anchor.predicted_seconds),
             compared(anchor.measured_seconds, anchor.predicted_seconds, "longer", "shorter")});
  const auto add = [&](const char* what, const std::optional<std::int64_t>& bytes,
                       const Range& range) {
    if (bytes && range.point > 0)
      table.add({what, format_bytes(*bytes), format_bytes(range.point),
                 compared(static_cast<double>(*bytes), static_cast<double>(range.point), "more",
                          "less")});
  };
  add("peak of live tensors", found.measured.allocated, before.allocated);
  add("peak of the allocator", found.measured.reserved, before.reserved);
  add("taken from the GPU", found.measured.device, before.device);
  return table.text("");
}

/// Beyond it a run is likely to be of another job than was said.
constexpr double kFarOff = 2;

std::string anchor_text(const AnchorArguments& a, const AnchorRun& found, const Calibration& before,
                        const Anchor& anchor) {
  const Estimate predicted = estimate_job(found.job, before);
  Calibration corrected = before;
  corrected.time = slowed_down(before.time, anchor.factors);
  const double then = estimate_job(found.job, corrected).time.step_seconds;
  std::string text = wrapped(fmt::format("{}: {}", a.log, found.how), "", "  ");
  text += measured_table(found, anchor, predicted);
  text += wrapped("Error of predicted times: " + step_error_text(predicted.time), "", "");
  text += wrapped(
      fmt::format(
          "This machine takes {}; a step of this job then takes {}. What is left, {}, is taken "
          "to be this job's own.",
          describe(anchor.factors), format_seconds(then),
          compared(anchor.measured_seconds, then, "longer", "shorter")),
      "", "");
  if (anchor.memory_over > 1)
    text += wrapped(fmt::format("Upper bounds of memory are no lower than {:.3f} times what is "
                                "estimated; estimates stay as they are.",
                                anchor.memory_over),
                    "", "");
  const double ratio = anchor.measured_seconds / anchor.predicted_seconds;
  if (ratio > kFarOff || ratio < 1 / kFarOff)
    text += wrapped("That is far off: is this the job that ran, on these GPUs?", "", "");
  return text;
}

Exit run_command(const AnchorArguments& a) {
  const std::string text = read_text_file(a.log, kLargestLog);
  const AnchorRun found = is_record(text) ? found_in_record(a, text) : found_in_log(a, text);
  Machine machine = a.calibration.machine();
  if (machine.anchor)
    throw InputError({.key = "--machine",
                      .message = "has an anchor already",
                      .expected = "what `shardplan probe` wrote, or none"});
  const Calibration calibration = a.calibration.load_for(found.job);
  machine.anchor = anchor_on(found.job, calibration, found.measured, a.log);
  if (a.output.json() || !a.output.file.empty()) a.output.write_json(machine_json(machine), 1);
  if (!a.output.json()) Output().write_text(anchor_text(a, found, calibration, *machine.anchor));
  return Exit::done;
}

}  // namespace

void add_anchor(CLI::App& app, Run& run) {
  auto a = std::make_shared<AnchorArguments>();
  CLI::App* command = app.add_subcommand(
      "anchor", "Correct what is predicted on a machine by one step that it took");
  command
      ->add_option("LOG", a->log,
                   "output of HF Trainer, DeepSpeed, torchtitan or Megatron-LM, a "
                   "trainer_state.json, or a record")
      ->required();
  a->job.add_files(*command, "the job that ran, as for estimate; a record holds its own");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_output(*command, a->output);
  command->footer(
      "Example: shardplan anchor train.log job.json -o anchor.json && shardplan fit llama-3.2-3b "
      "2xH100 --machine anchor.json");
  command->callback([a, &run] { run = [a] { return run_command(*a); }; });
}

}  // namespace shardplan::cli
