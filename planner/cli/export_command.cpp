#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/export_files.h"
#include "cli/job_options.h"
#include "questions/estimate_job.h"

namespace shardplan::cli {
namespace {

struct ExportArguments {
  JobOptions job;
  CalibrationOption calibration;
  std::string format;
  ExportFolder folder;
  Output output;
};

Exit run_export(const ExportArguments& a) {
  const Json asked = a.job.merged();
  const Job job = a.job.load(asked);
  if (job.rlhf && !exports_several_models(a.format))
    throw InputError(
        {.file = a.job.file,
         .key = "workload.kind",
         .message = "a job of several models has no such file",
         .expected = "--as training_arguments, which are TRL's, nemo_rl, openrlhf or verl"});
  if (!job.rlhf) require_training(job, "export", a.job.file);
  const Estimate e = estimate_job(job, a.calibration.load_for(job));
  tell(a.job.assumed_checkpointing());
  if (!a.folder.path.empty()) {
    a.folder.write(export_all(asked, job, e));
  } else {
    const std::string format =
        a.format.empty() ? std::string(export_formats(job.plan).front()) : a.format;
    const ExportedFile file = export_as(format, asked, job, e);
    if (a.output.json())
      a.output.write_json({{"format", file.format}, {"name", file.name}, {"text", file.text}});
    else
      a.output.write_bytes(file.text);
  }
  return e.verdict.fits ? Exit::done : Exit::does_not_fit;
}

}  // namespace

void add_export(CLI::App& app, Run& run) {
  auto a = std::make_shared<ExportArguments>();
  CLI::App* command =
      app.add_subcommand("export", "The files that run a job: ds_config and others");
  a->job.add_files(*command);
  command->add_option("--as", a->format,
                      "ds_config, accelerate, fsdp2, launch or job; or a trainer's own file: "
                      "training_arguments, axolotl, llamafactory, ms_swift, torchtitan, nemo, "
                      "nemo_rl, verl, openrlhf, oumi, llm_foundry, olmo, megatron");
  CLI::Option* to =
      command->add_option("--to", a->folder.path, "a folder for all formats that fit the framework")
          ->excludes("--as");
  command->add_flag("--force", a->folder.force, "replace files of the folder without asking")
      ->needs(to);
  command->footer(
      "Example: shardplan export configs/jobs/llama-2-7b-zero3.json --as ds_config\n"
      "Exit code 0: the job fits; 4: it does not, and is written all the same.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_output(*command, a->output);
  to->excludes(command->get_option("--output"));
  command->callback([a, &run] { run = [a] { return run_export(*a); }; });
}

}  // namespace shardplan::cli
