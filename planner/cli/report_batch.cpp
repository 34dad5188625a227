#include "cli/report_batch.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/diagnostic.h"
#include "cli/terminal.h"
#include "import/import.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "report/batch/batch.h"
#include "report/build.h"
#include "report/render/render.h"
#include "save/file.h"

namespace shardplan::cli {
namespace {

namespace fs = std::filesystem;

/// How many jobs are done, when the share changes.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}
  void at(std::size_t done) {
    const std::size_t percent = 100 * done / total_;
    if (percent == percent_) return;
    percent_ = percent;
    line_.show(fmt::format("{:3} %  {} of {} jobs", percent, done, total_));
  }

 private:
  ProgressLine line_;
  std::size_t total_, percent_ = 101;
};

std::string page_name(std::size_t n) {
  return fmt::format("jobs/{:06}.html", n + 1);
}

void write_pages(const BatchArguments& a, const std::vector<report::BatchJob>& jobs,
                 const std::vector<report::BatchOutcome>& outcomes, const HardwareCatalog& hardware,
                 const Calibration& calibration) {
  const MeasuredRuns runs = built_in_records(hardware);
  const report::Messages words(a.language);
  Progress progress(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!outcomes[i].estimate) continue;
    const report::Findings found =
        report::find_out(report::load_batch_job(jobs[i], hardware), calibration, runs,
                         {.name = jobs[i].name,
                          .version = SHARDPLAN_VERSION,
                          .command = a.command,
                          .job = report::job_document(jobs[i]).dump(2)});
    write_file((fs::path(a.folder) / page_name(i)).string(),
               report::report_html(report::job_report(found), words));
    progress.at(i + 1);
  }
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw InputError({.file = folder.string(), .message = "cannot make the folder"});
}

}  // namespace

bool is_batch(const std::string& path) {
  std::error_code error;
  if (path.empty()) return false;
  if (fs::is_directory(path, error)) return true;
  return importing::is_own_job(path) && report::is_sweep(read_json_file(path));
}

Exit report_batch(const BatchArguments& a) {
  if (a.folder.empty())
    throw InputError({.file = "<command line>",
                      .key = "--output",
                      .message = "missing",
                      .expected = "a folder for index.html and jobs.csv"});
  const std::vector<report::BatchJob> jobs =
      fs::is_directory(a.source) ? report::folder_jobs(a.source)
                                 : report::sweep_jobs(read_json_file(a.source), a.source);
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  make_folder(a.pages ? fs::path(a.folder) / "jobs" : fs::path(a.folder));
  std::vector<report::BatchOutcome> outcomes;
  {
    Progress progress(jobs.size());
    outcomes = report::run_batch(jobs, hardware, calibration, std::thread::hardware_concurrency(),
                                 [&](std::size_t done) { progress.at(done); });
  }
  if (a.pages) write_pages(a, jobs, outcomes, hardware, calibration);
  const auto page_of = [&](std::size_t n) { return a.pages ? page_name(n) : std::string(); };
  const report::Report index = report::index_report(outcomes, SHARDPLAN_VERSION, page_of);
  const fs::path folder(a.folder);
  StagedFiles files;
  files.add((folder / "jobs.csv").string(), report::batch_csv(outcomes));
  files.add((folder / "index.html").string(),
            report::report_html(index, report::Messages(a.language)));
  files.place();
  std::size_t broken = 0;
  for (const report::BatchOutcome& outcome : outcomes) {
    if (outcome.estimate) continue;
    ++broken;
    constexpr std::size_t kShown = 10;
    if (broken <= kShown) tell(fmt::format("shardplan: {}: {}\n", outcome.name, outcome.error));
  }
  if (broken > 0)
    tell(fmt::format("shardplan: {} of {} jobs could not be estimated; {} lists them\n", broken,
                     outcomes.size(), (folder / "index.html").string()));
  return broken == 0 ? Exit::done : Exit::bad_input;
}

}  // namespace shardplan::cli
