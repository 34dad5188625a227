// A plan as the files that run it, with what is predicted in a comment where a format has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimate/estimate.h"
#include "load/job.h"

namespace shardplan {

/// accelerate's configuration file, for `accelerate launch --config_file`. Under DeepSpeed it names
/// ds_config.json beside it.
std::string accelerate_yaml(const Job& job, const Estimate& estimate);

/// A shell script that starts a training program with torchrun, srun, the framework's own launcher
/// or accelerate.
std::string launch_script(const Job& job, const Estimate& estimate);

/// shardplan.job/1 with the plan in place of what `asked` left open; names ds_config.json.
Json job_json(const Json& asked, const Job& job);

/// A kind of file that runs a plan.
struct ExportFormat {
  std::string_view name;  ///< "ds_config"
  std::string_view file;  ///< "ds_config.json"
  /// Throws InputError for a plan that it cannot say.
  std::string (*write)(const Json& asked, const Job& job, const Estimate& estimate);
  bool several_models = false;  ///< jobs of kind rlhf too
  bool of_trainer = false;      ///< a trainer's own file, which an import reads as the same plan
};

/// Those that several frameworks have.
extern const ExportFormat kAccelerateFormat, kLaunchFormat, kJobFormat;

/// "ds_config", "accelerate", "fsdp2", "launch", "job": the formats that fit a plan.
std::vector<std::string_view> export_formats(const Plan& plan);

struct ExportedFile {
  std::string_view format;
  std::string name;  ///< "ds_config.json"
  std::string text;
  bool program() const { return format == "launch"; }  ///< its owner may run it
};
/// Whether that format says jobs of several models; false for an unknown one.
bool exports_several_models(std::string_view format);
ExportedFile export_as(std::string_view format, const Json& asked, const Job& job,
                       const Estimate& estimate);

/// Every format that fits the job's framework.
std::vector<ExportedFile> export_all(const Json& asked, const Job& job, const Estimate& estimate);

/// The job, the verdict and the peaks, as lines that begin with "# ".
std::string header_comment(const Job& job, const Estimate& estimate);

}  // namespace shardplan
