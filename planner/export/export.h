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

/// Keyword arguments of PyTorch's fully_shard, and a function that applies them. Throws InputError
/// when the job runs under another framework.
std::string fsdp2_python(const Job& job, const Estimate& estimate);

/// A shell script that starts a training program with deepspeed, torchrun, srun or accelerate;
/// Megatron-LM's pretrain_gpt.py with all arguments.
std::string launch_script(const Job& job, const Estimate& estimate);

/// The lines of a script that set Megatron-LM's arguments: of the network, as `network`, where it
/// is one that they can say, and of the plan, as `arguments`.
std::string megatron_arguments(const Job& job);

/// shardplan.job/1 with the plan in place of what `asked` left open; names ds_config.json.
Json job_json(const Json& asked, const Job& job);

/// "ds_config", "accelerate", "fsdp2", "launch", "job": the formats that fit a plan.
std::vector<std::string_view> export_formats(const Plan& plan);

struct ExportedFile {
  std::string_view format;
  std::string name;  ///< "ds_config.json"
  std::string text;
};
ExportedFile export_as(std::string_view format, const Json& asked, const Job& job,
                       const Estimate& estimate);

/// Every format that fits the job's framework.
std::vector<ExportedFile> export_all(const Json& asked, const Job& job, const Estimate& estimate);

/// The job, the verdict and the peaks, as lines that begin with "# ".
std::string header_comment(const Job& job, const Estimate& estimate);

}  // namespace shardplan
