#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/job_options.h"
#include "questions/compare.h"
#include "render/compare_text.h"
#include "save/estimate.h"

namespace shardplan::cli {
namespace {

struct CompareArguments {
  JobOptions job;
  CalibrationOption calibration;
  Output output;
};

Exit compare(const CompareArguments& a) {
  const Job job = a.job.load(a.job.merged());
  const Calibration calibration = a.calibration.load_for(job);
  const std::vector<Alternative> all = compare_plans(job, calibration);
  if (a.output.json()) {
    Json list = Json::array();
    for (const Alternative& alternative : all) {
      Json item = to_json(alternative.estimate, job);
      item["name"] = alternative.name;
      item["is_current"] = alternative.is_current;
      list.push_back(std::move(item));
    }
    a.output.write_json(list);
  } else {
    a.output.write_text(compare_text(job, all) + a.job.assumed_checkpointing());
  }
  return Exit::done;
}

}  // namespace

void add_compare(CLI::App& app, Run& run) {
  auto a = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand("compare", "The same job under other plans, side by side");
  a->job.add_files(*command);
  command->footer(
      "Example: shardplan compare --model llama-2-7b --cluster 4xA100-40GB\n"
      "Training: every ZeRO stage and offload, and every degree of parallelism halved and "
      "doubled;\n"
      "inference: formats of weights and KV cache, batches; rlhf: stages, and what may be away.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return compare(*a); }; });
}

}  // namespace shardplan::cli
