#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "export/carried.h"
#include "export/trainer_files.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "load/trainer_defaults.h"
#include "render/describe.h"
#include "render/estimate_text.h"

namespace shardplan {

const ExportFormat kAccelerateFormat{
    "accelerate", "accelerate.yaml",
    [](const Json&, const Job& job, const Estimate& e) { return accelerate_yaml(job, e); }};
const ExportFormat kLaunchFormat{
    "launch", "launch.sh",
    [](const Json&, const Job& job, const Estimate& e) { return launch_script(job, e); }};
const ExportFormat kJobFormat{"job", "job.json",
                              [](const Json& asked, const Job& job, const Estimate&) {
                                return job_json(asked, job).dump(2) + "\n";
                              }};

namespace {

/// Those that no framework has to itself.
constexpr std::array kShared{
    &kAccelerateFormat, &kLaunchFormat,       &kJobFormat,     &kTrainingArgumentsFormat,
    &kAxolotlFormat,    &kLlamaFactoryFormat, &kMsSwiftFormat, &kTorchtitanFormat,
    &kNemoFormat,       &kNemoRlFormat,       &kVerlFormat,    &kOpenRlhfFormat,
    &kOumiFormat,       &kLlmFoundryFormat,   &kOlmoFormat};

/// Of any framework; null when there is none of that name.
const ExportFormat* format_named(std::string_view name) {
  for (const ExportFormat* shared : kShared)
    if (shared->name == name) return shared;
  for (const FrameworkPlanning* framework : all_planning())
    if (const ExportFormat* own = framework->own_format; own != nullptr && own->name == name)
      return own;
  return nullptr;
}

}  // namespace

std::vector<std::string_view> export_formats(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const ExportFormat* format : planning_of(plan).formats(plan)) names.push_back(format->name);
  return names;
}

bool exports_several_models(std::string_view format) {
  const ExportFormat* known = format_named(format);
  return known != nullptr && known->several_models;
}

ExportedFile export_as(std::string_view format, const Json& asked, const Job& job,
                       const Estimate& e) {
  const std::vector<std::string_view> names = export_formats(job.plan);
  const ExportFormat* known = format_named(format);
  const bool of_trainer = known != nullptr && known->of_trainer;  // which says itself what it lacks
  if (names.size() == 1 && format != names.front() && !of_trainer)
    throw InputError({.file = "<command line>",
                      .key = "--as",
                      .message = fmt::format("a job of framework {} has no other file than itself",
                                             name_of(job.plan.framework.kind)),
                      .expected = std::string(names.front())});
  if (known != nullptr && !of_trainer)
    return {known->name, std::string(known->file), known->write(asked, job, e)};
  if (known != nullptr) {
    const Json whole = with_trainer_defaults(asked, job.plan.cluster.world()).job;
    ExportedFile file{known->name, std::string(known->file), known->write(whole, job, e)};
    check_carried(file, whole, job);
    return file;
  }
  std::vector<std::string_view> all = names;
  for (const ExportFormat* shared : kShared)
    if (std::ranges::find(all, shared->name) == all.end()) all.push_back(shared->name);
  throw InputError({.file = "<command line>",
                    .key = "--as",
                    .message = fmt::format("unknown format '{}'", format),
                    .expected = fmt::format("one of {}", fmt::join(all, ", ")),
                    .nearest = nearest(format, std::span<const std::string_view>(all))});
}

std::vector<ExportedFile> export_all(const Json& asked, const Job& job, const Estimate& e) {
  std::vector<ExportedFile> files;
  for (const std::string_view format : export_formats(job.plan))
    files.push_back(export_as(format, asked, job, e));
  return files;
}

std::string header_comment(const Job& job, const Estimate& e) {
  const std::string text = "Written by shardplan, which predicts for this plan:\n" +
                           headline(e, job) + resource_lines(e) +
                           time_lines(e, job.plan.cluster.world());
  std::string comment;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    comment += "# " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return comment;
}

}  // namespace shardplan
