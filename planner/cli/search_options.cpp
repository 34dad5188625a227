#include "cli/search_options.h"

#include <fmt/format.h>

#include <stdexcept>
#include <type_traits>

#include "base/diagnostic.h"
#include "cli/cost_options.h"
#include "cli/lists.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "load/checkpointing.h"
#include "load/precision.h"
#include "options/choices.h"

namespace shardplan::cli {
namespace {

struct AxisFlag {
  const char* flag;
  const char* pinned_by;
  const char* help;
};

constexpr AxisFlag kAxisFlags[] = {
    {"--gpu-counts", "", "numbers of GPUs: parts of a node or whole nodes"},
    {"--frameworks", "--framework", ""},  // said by the registry
    {"--zero-stages", "--zero-stage", "DeepSpeed's stages: 0 to 3"},
    {"--tensor-degrees", "--tensor-parallel", "GPUs that share each layer"},
    {"--sequence-parallels", "--sequence-parallel", "on, off: Megatron-LM's"},
    {"--ulysses-degrees", "--ulysses", "GPUs that share a sequence, exchanging heads"},
    {"--context-degrees", "--context-parallel", "GPUs that share a sequence, as a ring"},
    {"--pipeline-degrees", "--pipeline-parallel", "stages of layers"},
    {"--virtual-pipelines", "--virtual-pipeline", "chunks of layers on each stage"},
    {"--pipeline-schedules", "--pipeline-schedule", "gpipe, 1f1b, interleaved"},
    {"--stage-balances", "--stage-balance", "blocks, blocks_and_ends, parameters"},
    {"--expert-degrees", "--expert-parallel", "GPUs that share the experts of a layer"},
    {"--expert-tensors", "--expert-tensor-parallel", "whole, divided: each expert"},
    {"--data-degrees", "--data-parallel", "a limit on what the other degrees leave"},
    {"--precisions", "--precision", "presets, such as bf16-master,fp32"},
    {"--optimizer-offloads", "--offload-optimizer", "none, cpu, nvme"},
    {"--parameter-offloads", "--offload-param", "none, cpu, nvme"},
    {"--checkpointings", "--checkpointing", "none, selective, selective_op:2, blocks:8, full"},
    {"--mlp-tile-counts", "--mlp-tiles", "parts of the sequence for feed-forwards; 0: as they are"},
    {"--micro-batches", "--micro-batch", "samples a GPU takes at once"},
    {"--accumulations", "--gradient-accumulation", "micro-batches per step"},
    {"--reduce-buckets", "", "reduce_bucket_size, in elements"},
    {"--prefetch-buckets", "", "stage3_prefetch_bucket_size, in elements"},
    {"--persistence-thresholds", "", "stage3_param_persistence_threshold, in elements"},
};

struct ObjectiveWord {
  std::string_view word;
  Objective objective;
};

/// The most tokens per second take the least time: people say either.
constexpr ObjectiveWord kObjectiveWords[] = {{"throughput", Objective::throughput},
                                             {"cost", Objective::cost},
                                             {"gpus", Objective::gpus},
                                             {"memory", Objective::memory},
                                             {"time", Objective::throughput}};

Objective objective_named(const std::string& word) {
  std::vector<std::string> words;
  for (const ObjectiveWord& known : kObjectiveWords) words.emplace_back(known.word);
  return kObjectiveWords[choice_of("--objective", word, words)].objective;
}

constexpr std::int64_t kStages[] = {0, 1, 2, 3};

template <typename Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& value : values) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, NamedValue>)
      names.emplace_back(value.name);
    else if constexpr (std::is_enum_v<T>)
      names.emplace_back(name_of(value));
    else
      names.push_back(fmt::format("{}", value));
  }
  return names;
}

/// A value of an axis; of an option's table by its number.
template <typename T, typename Value>
T value_of(const Value& value) {
  if constexpr (std::is_same_v<Value, NamedValue>)
    return static_cast<T>(value.value);
  else
    return value;
}

constexpr const char* kPolicies = "--checkpointings";

/// Those in `text`, or the job's own where it is pinned.
std::vector<CheckpointChoice> policies(const std::string& text, bool pinned, const Plan& plan) {
  if (text.empty())
    return pinned ? std::vector{plan.checkpoint_choice()} : std::vector<CheckpointChoice>{};
  std::vector<CheckpointChoice> all;
  for (const std::string& word : split_list(text))
    all.push_back(checkpointing_of(word, "<command line>", kPolicies));
  return all;
}

[[noreturn]] void contradiction(std::string pair, std::string why, std::string expected) {
  throw InputError({.file = "<command line>",
                    .key = std::move(pair),
                    .message = "contradict each other: " + why,
                    .expected = std::move(expected)});
}

}  // namespace

void SearchOptions::add_flags(CLI::App& command) {
  lists_.reserve(std::size(kAxisFlags));
  for (const AxisFlag& axis : kAxisFlags) {
    lists_.push_back({axis.flag, axis.pinned_by, "", nullptr});
    ListFlag& list = lists_.back();
    const std::string help =
        *axis.help != '\0' ? axis.help
                           : fmt::format("{}", fmt::join(names_of(searchable_frameworks()), ", "));
    list.option = command.add_option(axis.flag, list.text, help)
                      ->group("Axes (lists: 1,2,4; absent: what is usual)")
                      ->type_name("LIST");
  }
  const auto limit = [&](const char* flag, auto& value, const char* help) {
    command.add_option(flag, value, help)->transform(positive_number())->group("Limits");
  };
  command.add_option("--objective", objective_,
                     "throughput (default; also: time), cost, gpus or memory");
  limit("--global-batch", global_batch_, "samples of a step over all GPUs; sets accumulation");
  limit("--gpu-memory-bytes", gpu_memory_bytes_, "of each GPU, for the upper bound");
  limit("--max-step-seconds", limits_.step_seconds, "of one optimizer step");
  limit("--max-cost-per-billion-tokens", limits_.money_per_billion_tokens, "needs a price");
  limit("--max-days", limits_.days, "for --tokens");
}

const SearchOptions::ListFlag& SearchOptions::list(std::string_view flag) const {
  for (const ListFlag& l : lists_)
    if (l.flag == flag) return l;
  throw std::logic_error("no such axis");
}

void SearchOptions::refuse_set_axes(const JobOptions& job) const {
  for (const ListFlag& l : lists_)
    if (l.option->count() > 0 && job.given(l.pinned_by))
      contradiction(fmt::format("{} and {}", l.flag, l.pinned_by),
                    "the one searches what the other sets", "one of the two");
}

AxisValues SearchOptions::axes(const JobOptions& job, const Plan& plan) const {
  refuse_set_axes(job);
  const auto asked = [&](std::string_view flag) { return list(flag).option->count() > 0; };
  const auto pinned = [&](std::string_view flag) { return job.given(list(flag).pinned_by); };
  const auto integers = [&](const char* flag, std::int64_t least, std::int64_t own) {
    if (asked(flag)) return integer_list(flag, list(flag).text, least);
    return pinned(flag) ? std::vector{own} : std::vector<std::int64_t>{};
  };
  const auto choices = [&](const char* flag, const auto& values, auto own) {
    std::vector<std::decay_t<decltype(own)>> chosen;
    if (asked(flag)) {
      for (const std::size_t place : choice_list(flag, list(flag).text, names_of(values)))
        chosen.push_back(value_of<std::decay_t<decltype(own)>>(values[place]));
    } else if (pinned(flag)) {
      chosen.push_back(own);
    }
    return chosen;
  };
  const auto switches = [&](const char* flag, std::vector<std::string> off_on, bool own) {
    if (!asked(flag)) return pinned(flag) ? std::vector{own} : std::vector<bool>{};
    std::vector<bool> chosen;
    for (const std::size_t place : choice_list(flag, list(flag).text, off_on))
      chosen.push_back(place == 1);
    return chosen;
  };
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const Parallel& p = plan.parallel;
  AxisValues v;
  v.tensors = integers("--tensor-degrees", 1, p.tensor);
  v.sequence_parallels = switches("--sequence-parallels", {"off", "on"}, p.sequence_parallel);
  v.ulysses = integers("--ulysses-degrees", 1, p.sequence);
  v.contexts = integers("--context-degrees", 1, p.context);
  v.pipelines = integers("--pipeline-degrees", 1, p.pipeline);
  v.virtual_pipelines = integers("--virtual-pipelines", 1, p.virtual_pipeline);
  v.schedules = choices("--pipeline-schedules", kSchedules, p.schedule);
  v.balances = choices("--stage-balances", kBalances, p.balance);
  v.experts = integers("--expert-degrees", 1, p.expert);
  v.expert_tensors = switches("--expert-tensors", {"whole", "divided"}, p.expert_tensor > 1);
  v.data = integers("--data-degrees", 1, plan.data_ranks());
  v.gpus = integers("--gpu-counts", 1, 0);
  v.frameworks = choices("--frameworks", searchable_frameworks(), plan.framework.kind);
  v.zero_stages = choices("--zero-stages", kStages, std::int64_t{zero.stage});
  if (asked("--precisions"))
    for (const std::size_t place :
         choice_list("--precisions", list("--precisions").text, precision_names()))
      v.precisions.push_back(precision_names()[place]);
  v.optimizer_offloads =
      choices("--optimizer-offloads", kOffloadDevices, zero.offload_optimizer.device);
  v.parameter_offloads =
      choices("--parameter-offloads", kOffloadDevices, zero.offload_param.device);
  v.checkpointings = policies(list(kPolicies).text, pinned(kPolicies), plan);
  v.mlp_tiles = integers("--mlp-tile-counts", 0, plan.mlp_tiles);
  v.micro_batches = integers("--micro-batches", 1, plan.workload.micro_batch);
  v.accumulations = integers("--accumulations", 1, plan.workload.gradient_accumulation);
  v.reduce_buckets = integers("--reduce-buckets", 1, 0);
  v.prefetch_buckets = integers("--prefetch-buckets", 0, 0);
  v.persistence_thresholds = integers("--persistence-thresholds", 0, 0);
  v.global_batch = global_batch_;
  return v;
}

bool SearchOptions::asks_frameworks() const {
  return list("--frameworks").option->count() > 0;
}

Goal SearchOptions::goal(const CostTerms& terms, const Plan& plan) const {
  Goal goal;
  goal.limits = limits_;
  goal.terms = terms;
  if (!objective_.empty()) goal.objective = objective_named(objective_);
  if (limits_.money_per_billion_tokens && !cost_of(plan, 1.0, terms).per_hour.on_demand)
    contradiction("--max-cost-per-billion-tokens and --cluster", "no price of these GPUs is known",
                  "--price-per-gpu-hour");
  if (limits_.days && !plan.workload.tokens)
    contradiction("--max-days and --tokens", "days of how many tokens?", "both of them");
  const PeakFlops& peak = plan.cluster.gpu.peak;
  const bool timed = (peak[PeakRate::bf16] || peak[PeakRate::fp16] || peak[PeakRate::fp32]) &&
                     plan.cluster.gpu.memory_bandwidth;
  const bool asks_time = goal.objective == Objective::throughput ||
                         goal.objective == Objective::cost || limits_.step_seconds ||
                         limits_.days || limits_.money_per_billion_tokens;
  if (!timed && asks_time)
    contradiction(
        "--objective and --cluster",
        fmt::format("the rates of {} are not known, and so no time is", plan.cluster.gpu.name),
        "a GPU of the catalogue, or --objective gpus or memory");
  return goal;
}

RolloutAxes SearchOptions::rollout_axes(const Job& job) const {
  constexpr std::string_view kDegrees = "--tensor-degrees", kMicro = "--micro-batches";
  const auto refuse = [](std::string_view flag) {
    throw InputError({.file = "<command line>",
                      .key = std::string(flag),
                      .message = "is not searched of reinforcement learning",
                      .expected = "--micro-batches or --tensor-degrees (of the engine)"});
  };
  for (const ListFlag& l : lists_)
    if (l.option->count() > 0 && l.flag != kDegrees && l.flag != kMicro) refuse(l.flag);
  if (global_batch_) refuse("--global-batch");
  if (gpu_memory_bytes_) refuse("--gpu-memory-bytes");
  if (!objective_.empty() && objective_named(objective_) != Objective::throughput)
    refuse("--objective");
  if (limits_.step_seconds) refuse("--max-step-seconds");
  if (limits_.money_per_billion_tokens) refuse("--max-cost-per-billion-tokens");
  if (limits_.days) refuse("--max-days");
  const Plan& plan = job.rlhf->roles.front().plan;
  if (!knows_time(plan))
    throw InputError({.file = "<command line>",
                      .key = "--cluster",
                      .message = fmt::format("the rates of {} are not known, and so no time is",
                                             plan.cluster.gpu.name),
                      .expected = "a GPU of the catalogue"});
  RolloutAxes axes;
  if (list(kMicro).option->count() > 0)
    axes.micro_batches = integer_list(std::string(kMicro), list(kMicro).text, 1);
  if (list(kDegrees).option->count() > 0)
    axes.degrees = integer_list(std::string(kDegrees), list(kDegrees).text, 1);
  return axes;
}

ServingGoal SearchOptions::serving_goal(const JobOptions& job, const CostTerms& terms,
                                        const Plan& plan) const {
  constexpr std::string_view kDegrees = "--tensor-degrees";
  const auto refuse = [](std::string_view flag) {
    throw InputError({.file = "<command line>",
                      .key = std::string(flag),
                      .message = "an engine that serves has no such thing to search",
                      .expected = "--tensor-degrees, --objective, --max-step-seconds (of a token) "
                                  "or --max-cost-per-billion-tokens"});
  };
  for (const ListFlag& l : lists_)
    if (l.option->count() > 0 && l.flag != kDegrees) refuse(l.flag);
  if (global_batch_) refuse("--global-batch");
  if (limits_.days) refuse("--max-days");
  ServingGoal goal;
  goal.terms = terms;
  goal.token_seconds = limits_.step_seconds;
  if (limits_.money_per_billion_tokens)
    goal.dollars_per_million = *limits_.money_per_billion_tokens / 1e3;
  if (!objective_.empty()) goal.objective = objective_named(objective_);
  const bool pinned = job.given("--engine-tensor-parallel");
  if (list(kDegrees).option->count() > 0) {
    if (pinned)
      contradiction("--tensor-degrees and --engine-tensor-parallel",
                    "the one searches what the other sets", "one of the two");
    goal.degrees = integer_list(std::string(kDegrees), list(kDegrees).text, 1);
  } else if (pinned) {
    goal.degrees = {plan.workload.generation.engine->tensor_parallel};
  }
  const bool priced = cost_of(plan, 1.0, terms).per_hour.on_demand.has_value();
  if (!priced && (goal.objective == Objective::cost || goal.dollars_per_million))
    contradiction("--objective and --cluster", "no price of these GPUs is known",
                  "--price-per-gpu-hour, or --objective throughput");
  return goal;
}

Plan SearchOptions::limited(Plan plan) const {
  if (!gpu_memory_bytes_) return plan;
  Gpu& gpu = plan.cluster.gpu;
  if (*gpu_memory_bytes_ > gpu.usable.count())
    contradiction("--gpu-memory-bytes and --cluster",
                  fmt::format("{} of {} bytes that {} has to use", *gpu_memory_bytes_,
                              gpu.usable.count(), gpu.name),
                  fmt::format("at most {}", gpu.usable.count()));
  gpu.usable = Bytes(*gpu_memory_bytes_);
  return plan;
}

}  // namespace shardplan::cli
