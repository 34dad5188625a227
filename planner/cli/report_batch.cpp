#include "cli/report_batch.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/diagnostic.h"
#include "cli/console.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "report/batch/batch.h"
#include "report/build.h"
#include "report/render/render.h"

namespace shardplan::cli {
namespace {

namespace fs = std::filesystem;

/// A line that rewrites itself; silent where nobody looks.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), shown_(is_watched()) {}
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void at(std::size_t done) {
    const std::size_t percent = 100 * done / total_;
    if (!shown_ || percent == percent_) return;
    percent_ = percent;
    fmt::print(stderr, "\r{:3} %  {} of {} jobs", percent, done, total_);
    std::fflush(stderr);
  }

 private:
  std::size_t total_, percent_ = 101;
  bool shown_;
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
    Output{.format = "html", .file = (fs::path(a.folder) / page_name(i)).string()}.write(
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
  return fs::is_directory(path, error) || report::is_sweep(read_json_file(path));
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
  Output{.format = "csv", .file = (folder / "jobs.csv").string()}.write(
      report::batch_csv(outcomes));
  Output{.format = "html", .file = (folder / "index.html").string()}.write(
      report::report_html(index, report::Messages(a.language)));
  std::size_t broken = 0;
  for (const report::BatchOutcome& outcome : outcomes) {
    if (outcome.estimate) continue;
    ++broken;
    constexpr std::size_t kShown = 10;
    if (broken <= kShown)
      print_remark(fmt::format("shardplan: {}: {}\n", outcome.name, outcome.error));
  }
  if (broken > 0)
    print_remark(fmt::format("shardplan: {} of {} jobs could not be estimated; {} lists them\n",
                             broken, outcomes.size(), (folder / "index.html").string()));
  return broken == 0 ? Exit::done : Exit::bad_input;
}

}  // namespace shardplan::cli
