#include "report/batch/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "base/nearest.h"
#include "json/reader.h"

namespace shardplan::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "shardplan.sweep/1";

/// Axes by the words that people use, and the fields of a job that they mean.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kWords{
    {{"gpus", "cluster"}, {"stage", "framework.zero_stage"}}};
constexpr std::array<std::string_view, 11> kFields{
    "model",     "cluster",   "gpus",      "stage",         "framework", "workload",
    "precision", "optimizer", "attention", "checkpointing", "loss"};

struct Axis {
  std::vector<std::string> path;  ///< {"framework", "zero_stage"}
  std::vector<Json> values;
};

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

[[noreturn]] void fail(const std::string& file, std::string key, std::string message,
                       std::string expected, std::string near = "") {
  throw InputError({.file = file,
                    .key = std::move(key),
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(near)});
}

Axis read_axis(const std::string& key, const Json& values, const std::string& file) {
  if (!values.is_array() || values.empty())
    fail(file, "sweep." + key, "found " + describe(values), "a list with at least one value");
  std::string path = key;
  for (const auto& [word, field] : kWords)
    if (key == word) path = field;
  Axis axis{split(path), values.get<std::vector<Json>>()};
  if (std::find(kFields.begin(), kFields.end(), axis.path.front()) == kFields.end())
    fail(file, "sweep." + key, "no such field of a job",
         fmt::format("a path such as workload.micro_batch, beginning with one of {}",
                     fmt::join(kFields, ", ")),
         nearest(axis.path.front(), std::span<const std::string_view>(kFields)));
  return axis;
}

/// Sets a field, and makes "deepspeed" {"name": "deepspeed"} on the way where it must.
void set(Json& job, const std::vector<std::string>& path, const Json& value) {
  Json* at = &job;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    Json& next = (*at)[path[i]];
    if (next.is_string()) next = Json{{"name", next}};
    if (!next.is_object()) next = Json::object();
    at = &next;
  }
  (*at)[path.back()] = value;
}

std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Json base_of(const Json& sweep, const std::string& file) {
  const auto job = sweep.find("job");
  if (job == sweep.end()) return Json::object();
  if (job->is_object()) return *job;
  if (!job->is_string()) fail(file, "job", "found " + describe(*job), "a path or a job");
  const fs::path path = fs::path(file).parent_path() / job->get<std::string>();
  return read_json_file(path.string());
}

}  // namespace

std::vector<BatchJob> folder_jobs(const std::string& folder) {
  std::vector<BatchJob> jobs;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file(error) || it->path().extension() != ".json") continue;
    const std::string file = it->path().string();
    jobs.push_back({it->path().lexically_relative(folder).generic_string(), file, ""});
  }
  if (error) throw InputError({.file = folder, .message = "cannot read the folder"});
  if (jobs.empty())
    throw InputError({.file = folder, .message = "no jobs in this folder", .expected = "*.json"});
  std::sort(jobs.begin(), jobs.end(),
            [](const BatchJob& a, const BatchJob& b) { return a.name < b.name; });
  return jobs;
}

bool is_sweep(const Json& document) {
  if (!document.is_object()) return false;
  const auto schema = document.find("schema");
  return document.contains("sweep") || (schema != document.end() && *schema == kSchema);
}

std::vector<BatchJob> sweep_jobs(const Json& sweep, const std::string& file) {
  for (const auto& [key, value] : sweep.items()) {
    constexpr std::array<std::string_view, 4> kKeys{"schema", "description", "job", "sweep"};
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
      fail(file, key, "unknown key", fmt::format("one of {}", fmt::join(kKeys, ", ")),
           nearest(key, std::span<const std::string_view>(kKeys)));
  }
  if (const auto schema = sweep.find("schema"); schema != sweep.end() && *schema != kSchema)
    fail(file, "schema", "found " + describe(*schema), std::string(kSchema));
  const auto axes_json = sweep.find("sweep");
  if (axes_json == sweep.end() || !axes_json->is_object() || axes_json->empty())
    fail(file, "sweep", axes_json == sweep.end() ? "missing" : "found " + describe(*axes_json),
         R"(lists of values, such as {"model": ["7B", "13B"], "stage": [2, 3]})");
  std::vector<Axis> axes;
  std::int64_t total = 1;
  for (const auto& [key, values] : axes_json->items()) {
    axes.push_back(read_axis(key, values, file));
    const auto size = static_cast<std::int64_t>(axes.back().values.size());
    if (total > kMostJobs / size)
      fail(file, "sweep", "too many jobs", fmt::format("at most {}", kMostJobs));
    total *= size;
  }
  const Json base = base_of(sweep, file);
  std::vector<BatchJob> jobs;
  for (std::int64_t n = 0; n < total; ++n) {
    Json job = base;
    std::string name;
    std::int64_t rest = n, block = total;
    for (const Axis& axis : axes) {
      block /= static_cast<std::int64_t>(axis.values.size());
      const Json& value = axis.values[static_cast<std::size_t>(rest / block)];
      rest %= block;
      set(job, axis.path, value);
      name += (name.empty() ? "" : " ") + shown(value);
    }
    jobs.push_back({std::move(name), file, job.dump()});
  }
  return jobs;
}

}  // namespace shardplan::report
