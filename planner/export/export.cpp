#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "export/ds_config.h"
#include "frameworks/registry.h"
#include "render/describe.h"
#include "render/estimate_text.h"

namespace shardplan {

std::vector<std::string_view> export_formats(const Plan& plan) {
  switch (plan.framework.kind) {
    case FrameworkKind::deepspeed:
      return {"ds_config", "accelerate", "launch", "job"};
    case FrameworkKind::fsdp2:
      if (plan.parallel.tensor > 1) return {"fsdp2", "launch", "job"};
      return {"fsdp2", "accelerate", "launch", "job"};
    case FrameworkKind::single:
    case FrameworkKind::ddp:
      if (plan.parallel.tensor > 1) return {"launch", "job"};
      return {"accelerate", "launch", "job"};
    case FrameworkKind::megatron:
      return {"launch", "job"};
    case FrameworkKind::native:
      return {"job"};
  }
  return {};
}

ExportedFile export_as(std::string_view format, const Json& asked, const Job& job,
                       const Estimate& e) {
  const FrameworkKind framework = job.plan.framework.kind;
  const std::vector<std::string_view> names = export_formats(job.plan);
  if (names.size() == 1 && format != names.front())
    throw InputError({.file = "<command line>",
                      .key = "--as",
                      .message = fmt::format("a job of framework {} has no other file than itself",
                                             name_of(framework)),
                      .expected = std::string(names.front())});
  if (format == "ds_config")
    return {format, "ds_config.json",
            ds_config_of(job.plan, job.ds_config, job.autos).dump(2) + "\n"};
  if (format == "accelerate") return {format, "accelerate.yaml", accelerate_yaml(job, e)};
  if (format == "fsdp2") return {format, "fsdp2.py", fsdp2_python(job, e)};
  if (format == "launch") return {format, "launch.sh", launch_script(job, e)};
  if (format == "job") return {format, "job.json", job_json(asked, job).dump(2) + "\n"};
  throw InputError({.file = "<command line>",
                    .key = "--as",
                    .message = fmt::format("unknown format '{}'", format),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .nearest = nearest(format, std::span<const std::string_view>(names))});
}

std::vector<ExportedFile> export_all(const Json& asked, const Job& job, const Estimate& e) {
  std::vector<ExportedFile> files;
  for (const std::string_view format : export_formats(job.plan))
    files.push_back(export_as(format, asked, job, e));
  return files;
}

std::string header_comment(const Job& job, const Estimate& e) {
  const std::string text = "Written by shardplan, which predicts for this plan:\n" +
                           headline(e, job) + resource_lines(e) + time_lines(e);
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
