#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/job_options.h"
#include "cli/lists.h"
#include "load/model.h"
#include "questions/estimate_job.h"
#include "questions/largest.h"
#include "questions/serving.h"
#include "render/largest_text.h"
#include "save/estimate.h"

namespace shardplan::cli {
namespace {

struct MaxArguments {
  JobOptions job;
  CalibrationOption calibration;
  std::string of = "micro_batch";
  StepLimit step_seconds;
  Output output;
};

LargestResult answer(const std::string& of, const Job& job, const Calibration& calibration,
                     StepLimit most) {
  if (of == "batch" || of == "micro_batch" || of == "concurrency")
    return largest_micro_batch(job.model, job.plan, calibration, most);
  if (of == "prompt_length" || of == "sequence_length")
    return largest_sequence(job.model, job.plan, calibration, most);
  if (of == "gpus") return fewest_gpus(job.model, job.plan, calibration);
  const auto build = [&](std::int64_t parameters) {
    return load_named_model(fmt::format("{}M", parameters / 1'000'000),
                            {"<command line>", "parameters", ""}, build_options(job.plan));
  };
  return largest_parameters(job.plan, calibration, build, most);
}

/// Of several models: each micro-batch is a job of its own, with the batches that follow from it.
LargestResult largest_of_several(const MaxArguments& a, Json written,
                                 const Calibration& calibration) {
  constexpr std::int64_t kMost = 1 << 14;
  const auto with = [&](std::int64_t n) {
    written["workload"]["micro_batch"] = n;
    return estimate_job(a.job.load(written), calibration);
  };
  return largest_fitting(1, kMost, with, a.step_seconds);
}

/// Batch and prompt are inference's, micro-batch and sequence training's.
void check_kind(const MaxArguments& a, const Job& job) {
  const bool inference = job.plan.workload.kind == WorkKind::inference;
  const bool asks_inference = a.of == "batch" || a.of == "concurrency" || a.of == "prompt_length";
  const bool asks_training = a.of == "micro_batch" || a.of == "sequence_length";
  if (job.rlhf && a.of == "micro_batch") return;
  if (inference ? !asks_training : !asks_inference && !job.rlhf) return;
  throw InputError({.file = "<command line>",
                    .key = "--of",
                    .message = fmt::format("{} of a job of kind {}", a.of,
                                           inference  ? "inference"
                                           : job.rlhf ? "rlhf"
                                                      : "train"),
                    .expected = inference  ? "batch, prompt_length, parameters or gpus"
                                : job.rlhf ? "micro_batch"
                                           : "micro_batch, sequence_length, parameters or gpus"});
}

/// More GPUs take other batches: a question for the search.
void check_limit(const MaxArguments& a) {
  if (!a.step_seconds || a.of != "gpus") return;
  throw InputError({.file = "<command line>",
                    .key = "--max-step-seconds and --of gpus",
                    .message = "contradict each other: the fewest GPUs are found by memory",
                    .expected = "shardplan search --objective gpus --max-step-seconds"});
}

Exit largest(const MaxArguments& a) {
  check_limit(a);
  Json base = a.job.usual();
  if (a.of == "parameters") base["model"] = "1B";  // replaced by each size that is tried
  const Json written = a.job.merged(base);
  Job job = a.job.load(written);
  check_kind(a, job);
  const Calibration calibration = a.calibration.load_for(job);
  const auto degree = degree_left_open(written, job, calibration);
  if (degree) job.plan.workload.generation.engine->tensor_parallel = *degree;
  const LargestResult r = job.rlhf ? largest_of_several(a, written, calibration)
                                   : answer(a.of, job, calibration, a.step_seconds);
  if (a.output.json()) {
    Json json;
    json["of"] = a.of;
    json["value"] = r.value ? Json(*r.value) : Json(nullptr);
    json["surely"] = json["value"];
    json["probably"] = r.probably ? Json(*r.probably) : Json(nullptr);
    json["at_limit"] = r.at_limit;
    json["at"] = r.at ? to_json(*r.at, job) : Json(nullptr);
    json["at_probably"] = r.at_probably ? to_json(*r.at_probably, job) : Json(nullptr);
    json["beyond"] = r.beyond ? to_json(*r.beyond, job) : Json(nullptr);
    a.output.write_json(json);
  } else {
    std::string text = largest_text(a.of, r, job);
    if (degree)
      text += fmt::format("  with engines over {} GPUs each, which serve best\n", *degree);
    text += a.job.assumed_checkpointing();
    a.output.write_text(text);
  }
  return r.value ? Exit::done : Exit::does_not_fit;
}

}  // namespace

void add_max(CLI::App& app, Run& run) {
  auto a = std::make_shared<MaxArguments>();
  CLI::App* command =
      app.add_subcommand("max", "The largest (for gpus the smallest) value that fits");
  a->job.add_files(*command);
  command
      ->add_option(
          "--of", a->of,
          "micro_batch, sequence_length, parameters, gpus; of inference batch (concurrency), "
          "prompt_length; of several models micro_batch")
      ->check(word_among({"micro_batch", "sequence_length", "parameters", "gpus", "batch",
                          "prompt_length", "concurrency"}));
  command->add_option("--max-step-seconds", a->step_seconds, "of one optimizer step")
      ->transform(positive_number());
  command->footer(
      "Example: shardplan max --model llama-2-7b --cluster 4xA100-40GB --of sequence_length\n"
      "It says what surely fits (the upper bound does) and what probably does (the estimate).\n"
      "Exit code 0: there is one that surely fits; 4: not even the smallest does.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return largest(*a); }; });
}

}  // namespace shardplan::cli
