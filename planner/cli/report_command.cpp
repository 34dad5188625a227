#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/ascii.h"
#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/job_options.h"
#include "cli/lists.h"
#include "cli/report_batch.h"
#include "cli/report_format.h"
#include "cli/watched_search.h"
#include "load/hardware.h"
#include "questions/estimate_job.h"
#include "questions/search/axes.h"
#include "report/build.h"
#include "report/render/render.h"

namespace shardplan::cli {
namespace {

struct ReportArguments {
  JobOptions job;
  CalibrationOption calibration;
  std::string against;
  std::string format;  ///< "": from the file's extension
  std::string language = "en";
  bool pages = false;
  bool search = false;        ///< makes one
  std::string search_result;  ///< file of one
  Output output;
  const CLI::App* command = nullptr;
};

/// A word as a shell reads it.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view("_-./,:=@+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The command as it was typed, options in their long form.
std::string command_line(const CLI::App& command) {
  std::string line = "shardplan report";
  std::set<const CLI::Option*> told;  // one of several values is in the order once for each
  for (const CLI::Option* option : command.parse_order()) {
    if (!told.insert(option).second) continue;
    const bool positional = option->get_lnames().empty();
    if (!positional) line += " --" + option->get_lnames().front();
    if (option->get_expected_max() == 0) continue;
    for (const std::string& value : option->results()) line += " " + quoted(value);
  }
  return line;
}

report::Findings findings_of(const ReportArguments& a, const Json& document,
                             const std::string& file, const MeasuredRuns& runs) {
  const bool own = file == a.job.file;
  Job job = own ? a.job.load(document) : load(document, file);
  const Calibration calibration = a.calibration.load_for(job);
  return report::find_out(
      std::move(job), calibration, runs,
      {.name = file.empty() ? "the job" : file,
       .version = SHARDPLAN_VERSION,
       .command = command_line(*a.command),
       .job = document.dump(2),
       .directory = std::filesystem::path(file).parent_path().string(),
       .taken_for_granted = own ? a.job.taken_for_granted() : std::vector<std::string>{}});
}

/// Around the job, with the usual values of all axes; the fastest plan, or the smallest one where
/// no time is known.
Json search_around(const report::Findings& f, const ReportArguments& a) {
  const SearchSpace space = make_space(f.job.model, f.job.plan, {});
  Goal goal;
  if (f.estimate.time.step_seconds <= 0) goal.objective = Objective::memory;
  const ModelVariants models = variants_of(f.job, a.job.merged(), a.job.file, space);
  const SearchResult result = watched_search(models, space, goal, f.calibration, 0);
  return search_json(answer_of(f.job, models, space, goal, result, f.calibration));
}

std::optional<report::FoundSearch> found_search(const ReportArguments& a,
                                                const report::Findings& f) {
  if (a.search) require_training(f.job, "report --search", a.job.file);
  if (a.search) return report::read_search(search_around(f, a), "--search", f.job);
  if (a.search_result.empty()) return std::nullopt;
  return report::read_search(read_json_file(a.search_result), a.search_result, f.job);
}

Exit one_report(const ReportArguments& a) {
  const std::string format = report_format(a.format, a.output.file);
  const MeasuredRuns runs = built_in_records(load_hardware_catalog());
  const report::Messages words(a.language);
  report::Findings found = findings_of(a, a.job.merged(), a.job.file, runs);
  if (a.against.empty()) {
    found.search = found_search(a, found);
    a.output.write_bytes(rendered(report::job_report(found), format, words));
    return Exit::done;
  }
  const report::Findings before = findings_of(a, read_json_file(a.against), a.against, runs);
  a.output.write_bytes(rendered(report::difference_report(before, found), format, words));
  return Exit::done;
}

/// Refuses a flag that makes no sense with what is asked.
void refuse(bool given, const std::string& file, const char* flag, const char* why,
            const char* expected) {
  if (!given) return;
  throw InputError({.file = file, .key = flag, .message = why, .expected = expected});
}

Exit run_report(const ReportArguments& a) {
  const bool searches = a.search || !a.search_result.empty();
  const char* flag = a.search ? "--search" : "--search-result";
  if (!is_batch(a.job.file)) {
    refuse(searches && !a.against.empty(), a.job.file, flag,
           "is for the report of one job, and --against compares two", "one of the two");
    return one_report(a);
  }
  refuse(!a.against.empty(), a.job.file, "--against",
         "compares two jobs, and this is a list of them", "a job file");
  refuse(searches, a.job.file, flag, "is for the report of one job, and this is a list of them",
         "a job file");
  return report_batch({.source = a.job.file,
                       .folder = a.output.file,
                       .language = a.language,
                       .command = command_line(*a.command),
                       .pages = a.pages});
}

}  // namespace

void add_report(CLI::App& app, Run& run) {
  auto a = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report", "A report to hand on: HTML, Markdown, JSON or CSV; of a job, of two, or of many");
  a->command = command;
  a->job.add_files(*command,
                   "a job file or a trainer's files (flags override them), a sweep file, or a "
                   "folder of jobs");
  command->add_option("--against", a->against,
                      "another job: what changes from it to JOB, in bytes and time");
  command
      ->add_option("--format", a->format,
                   "html, md, json or csv; without it what the extension of -o says, or md")
      ->check(word_among({"html", "md", "json", "csv"}));
  command->add_option("--language", a->language, "of html and md: en, ja or ko")
      ->check(word_among(languages()));
  CLI::Option* search =
      command->add_flag("--search", a->search,
                        "with what a search around the job finds: the usual values of all axes");
  command
      ->add_option("--search-result", a->search_result,
                   "with what `shardplan search --format json -o FILE` has found for this job")
      ->excludes(search);
  command->add_flag("--pages", a->pages, "of many jobs: a page for each one too");
  command->add_option("-o,--output", a->output.file,
                      "the file to write; of many jobs, the folder for index.html and jobs.csv");
  command->footer(
      "Example: shardplan report configs/jobs/llama-2-7b-zero3.json -o report.html\n"
      "         shardplan report new.json --against old.json --format md\n"
      "         shardplan report sweep.json -o reports/\n"
      "Exit code 3: a job could not be read; of many jobs, the others are reported.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  command->callback([a, &run] { run = [a] { return run_report(*a); }; });
}

}  // namespace shardplan::cli
