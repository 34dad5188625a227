#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/export_files.h"
#include "cli/search_options.h"
#include "cli/watched_search.h"
#include "frameworks/planning_registry.h"
#include "questions/estimate_job.h"
#include "questions/search/rollout_search.h"
#include "questions/serving.h"
#include "render/rollout_search_text.h"
#include "render/serving_text.h"

namespace shardplan::cli {
namespace {

struct SearchArguments {
  JobOptions job;
  SearchOptions search;
  CalibrationOption calibration;
  CostTerms cost;
  unsigned threads = 0;
  std::size_t rows = 10;
  ExportFolder export_folder;
  Output output;
};

/// Engines over the degrees that a model and a node allow.
Exit run_serving(const SearchArguments& a, Job job) {
  if (!a.export_folder.path.empty())
    throw InputError({.file = "<command line>",
                      .key = "--export",
                      .message = "no format says how an engine serves",
                      .expected = "none of it"});
  job.plan = a.search.limited(std::move(job.plan));
  const ServingGoal goal = a.search.serving_goal(a.job, a.cost, job.plan);
  const auto found = search_serving(job, a.calibration.load_for(job), goal);
  if (a.output.json())
    a.output.write_json(serving_json(found));
  else
    a.output.write_text(serving_search_text(job, found, goal));
  return found.empty() ? Exit::does_not_fit : Exit::done;
}

/// Ways in which a trainer and the engine that answers share the GPUs.
Exit run_rollouts(const SearchArguments& a, const Job& job, const Json& asked) {
  const RolloutAxes axes = a.search.rollout_axes(job);
  const RolloutSpace space(job, asked, axes.micro_batches, axes.degrees);
  const auto load = [&](const Json& written) { return a.job.load(written); };
  const RolloutFound found = search_rollouts(asked, space, a.calibration.load_for(job), load);
  if (!found.choices.empty() && !a.export_folder.path.empty()) {
    const RolloutChoice& best = found.choices.front();
    const Json written = with_fields(
        asked, {{.what = "", .how = "", .apply = {}, .subject = "", .fields = best.fields}});
    a.export_folder.write(export_all(written, a.job.load(written), best.estimate));
  }
  if (a.output.json())
    a.output.write_json(rollout_search_json(found));
  else
    a.output.write_text(rollout_search_text(job, asked, found, a.rows));
  return found.choices.empty() ? Exit::does_not_fit : Exit::done;
}

bool lacks_room(const InputError& error) {
  return error.diagnostic().key == "workload.rollout.gpu_memory_utilization";
}

/// A job whose engine has no room with the share that it says is asked what to say instead: it is
/// loaded with a whole GPU for the engine, and with as many of them as that takes.
Job loaded(const SearchArguments& a, const Json& asked) {
  constexpr std::int64_t kMostDegree = 8;
  Json most = asked;
  for (std::int64_t degree = 1;; degree *= 2) {
    try {
      return a.job.load(most);
    } catch (const InputError& error) {
      if (!lacks_room(error) || degree > kMostDegree) throw;
    }
    set_field(most, "/workload/rollout/gpu_memory_utilization", 1);
    if (degree > 1) set_field(most, "/workload/rollout/tensor_parallel", degree);
  }
}

struct Searched {
  SearchSpace space;
  ModelVariants models;
  SearchResult result;
};

Searched searched(const SearchArguments& a, const Job& job, const Json& asked, const Plan& base,
                  const AxisValues& values, const Goal& goal, const Calibration& calibration) {
  SearchSpace space = make_space(job.model, base, values);
  ModelVariants models = variants_of(job, asked, a.job.file, space);
  SearchResult result = watched_search(models, space, goal, calibration, a.threads);
  return {std::move(space), std::move(models), std::move(result)};
}

/// Where nobody said a framework, one GPU is plain PyTorch's, which keeps everything on it. The
/// job's own, and those that have ZeRO's offloads: what is tried where nothing of it fits.
std::vector<FrameworkKind> with_offloads(const SearchArguments& a, const Job& job) {
  const bool said =
      std::none_of(job.assumed.begin(), job.assumed.end(),
                   [](const std::string& what) { return what.rfind("framework: ", 0) == 0; });
  if (said || a.search.asks_frameworks() || traits_of(job.plan).data_parallel) return {};
  std::vector<FrameworkKind> kinds{job.plan.framework.kind};
  for (const FrameworkKind kind : searchable_frameworks())
    if (traits_of(kind).has_zero) kinds.push_back(kind);
  return kinds;
}

Exit run_search(const SearchArguments& a) {
  const Json asked = a.job.merged();
  Job job = loaded(a, asked);
  if (job.rlhf && generates(job.rlhf->algorithm)) return run_rollouts(a, job, asked);
  if (job.plan.workload.generation.engine) return run_serving(a, std::move(job));
  require_training(job, "search", a.job.file);
  const Plan base = a.search.limited(job.plan);
  AxisValues values = a.search.axes(a.job, base);
  const Goal goal = a.search.goal(a.cost, base);
  const Calibration calibration = a.calibration.load_for(job);
  std::optional<Searched> all = searched(a, job, asked, base, values, goal, calibration);
  if (all->result.front.empty() && !all->result.interrupted) {
    values.frameworks = with_offloads(a, job);
    if (!values.frameworks.empty())
      all.emplace(searched(a, job, asked, base, values, goal, calibration));
  }
  const auto& [space, models, result] = *all;
  const SearchAnswer answer = answer_of(job, models, space, goal, result, calibration);
  const bool found = !result.front.empty();
  if (found && !a.export_folder.path.empty()) {
    const Found& best = result.front.front();
    a.export_folder.write(export_all(asked, job_with(job, best.plan), best.estimate));
  }
  if (a.output.json())
    a.output.write_json(search_json(answer));
  else
    a.output.write_text(search_text(answer, a.rows));
  if (result.interrupted) return Exit::interrupted;
  return found ? Exit::done : Exit::does_not_fit;
}

}  // namespace

void add_search(CLI::App& app, Run& run) {
  auto a = std::make_shared<SearchArguments>();
  CLI::App* command = app.add_subcommand("search", "The best plans, and what rules the others out");
  a->job.add_files(*command);
  command->footer(
      "Example: shardplan search --model llama-2-70b --cluster 8x8xH100 --global-batch 512\n"
      "With --frameworks deepspeed,fsdp2,megatron it asks each for the degrees that it has.\n"
      "A field of the job that is given as a flag (--zero-stage 2) is kept; the other axes are\n"
      "searched. With --serve engines over 1, 2, 4, ... GPUs, the cheapest a token first (or\n"
      "--objective); --max-step-seconds is then of a token. Of GRPO and PPO: how the trainer and\n"
      "the engine that answers share the GPUs, with which share, sleep and micro-batch. Exit code "
      "0: a\nplan fits; 4: none does; 130: interrupted, with the best so far.");
  a->search.add_flags(*command);
  add_cost_flags(*command, a->cost);
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  command->add_option("--threads", a->threads, "as many as the machine has, if absent");
  command->add_option("--rows", a->rows, "of the front that the text shows");
  CLI::Option* folder = command->add_option("--export", a->export_folder.path,
                                            "a folder for the files that run the best plan");
  command
      ->add_flag("--force", a->export_folder.force, "replace files of that folder without asking")
      ->needs(folder);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return run_search(*a); }; });
}

}  // namespace shardplan::cli
