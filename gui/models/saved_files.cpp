#include "models/saved_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "export/export.h"
#include "job/fields.h"
#include "load/record.h"
#include "models/engine_job.h"
#include "questions/estimate_job.h"
#include "report/build.h"
#include "report/messages.h"
#include "report/render/render.h"
#include "save/file.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;

std::string rendered(const report::Report& page, const std::string& extension,
                     const report::Messages& messages) {
  if (extension == ".html" || extension == ".htm") return report::report_html(page, messages);
  if (extension == ".json") return report::report_json(page, messages);
  if (extension == ".csv") return report::report_csv(page, messages);
  return report::report_markdown(page, messages);
}

}  // namespace

void write_report(const Answer& answer, const Json& job, const Workbench& workbench,
                  const std::string& path, const std::string& language, const std::string& version,
                  const Background::Control& control) {
  const std::string extension = fs::path(path).extension().string();
  if (extension != ".html" && extension != ".htm" && extension != ".md" && extension != ".json" &&
      extension != ".csv")
    throw InputError({.file = path,
                      .message = "the name has no format",
                      .expected = ".html, .md, .json or .csv"});
  require_steps(*answer.job, "report", "");
  report::Origin origin;
  origin.version = version;
  origin.command = command_line(job, "");
  origin.job = job.dump(2);
  const report::Findings findings = report::find_out(
      *answer.job, workbench.calibration, built_in_records(workbench.hardware), std::move(origin));
  control.progress(0.8);  // most of it is asking every question of the report
  const std::string text =
      rendered(report::job_report(findings), extension, report::Messages(language));
  if (control.stop.stop_requested()) return;
  write_file(path, text);
  control.progress(1);
}

std::optional<std::string> command_to_copy(const JobDocument& document) {
  const bool is_saved = !document.path().isEmpty() && !document.is_modified();
  if (is_saved)
    return command_line(document.json(), fs::absolute(document.path().toStdString()).string());
  return command_with_flags(with_whole_paths(document.json(), document.directory()));
}

std::vector<PlanFile> plan_files(const Answer& answer, const Json& job) {
  std::vector<PlanFile> files;
  if (answer.job->plan.workload.kind != WorkKind::train)  // no launcher runs it from a plan
    return {{"job.json", job.dump(2) + "\n"}};
  for (ExportedFile& file : export_all(job, *answer.job, *answer.estimate)) {
    const bool program = file.program();
    files.push_back({std::move(file.name), std::move(file.text), program});
  }
  return files;
}

std::vector<std::string> files_in_the_way(const std::vector<PlanFile>& files,
                                          const std::string& folder) {
  std::vector<std::string> names;
  for (const PlanFile& file : files) {
    std::error_code error;
    const fs::path path = fs::path(folder) / file.name;
    if (!fs::exists(path, error)) continue;
    try {
      if (read_text_file(path.string()) == file.text) continue;
    } catch (const InputError&) {  // not to be read: all the more in the way
    }
    names.push_back(file.name);
  }
  return names;
}

void write_plan_files(const std::vector<PlanFile>& files, const std::string& folder) {
  StagedFiles staged;
  for (const PlanFile& file : files)
    staged.add((fs::path(folder) / file.name).string(), file.text,
               file.program ? StagedFiles::Mode::program : StagedFiles::Mode::data);
  staged.place();
}

}  // namespace shardplan::gui
