// How many stages the layers are divided over, and how these take turns and share blocks.
#include <algorithm>

#include "frameworks/planning_registry.h"
#include "parallel/degrees.h"
#include "questions/search/degree_axes.h"

namespace shardplan::degree_axes {

Axis pipeline_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  const std::vector<FrameworkKind> kinds = searched_frameworks(base, values);
  const bool unasked_none = std::all_of(kinds.begin(), kinds.end(), [](FrameworkKind kind) {
    return planning_of(kind).needs_pipeline_module.get();
  });
  const std::vector<std::int64_t> all =
      degree_values(base, values, Degree::pipeline, values.pipelines,
                    unasked_none ? std::vector<std::int64_t>{}
                                 : divisors(base.cluster.world(), block_count(*model)));
  Axis axis = axis_of("pipeline", kPipelineFlag, all);
  axis.apply = [all](Plan& p, std::size_t v) { p.parallel.pipeline = all[v]; };
  axis.rules = joined_rules(
      {{unsupported(Degree::pipeline)},
       framework_rules(axis.name, true, base, values),
       {fills_the_world()},
       framework_rules(axis.name, false, base, values),
       {{"fewer blocks than pipeline stages, or an encoder beside the decoder", kModelFlag,
         [model](const Plan& p, std::size_t) {
           return p.parallel.pipeline > 1 &&
                  (model->facts.encoder_decoder || block_count(*model) + 2 < p.parallel.pipeline);
         }}}});
  return axis;
}

Axis chunks_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  const std::vector<std::int64_t> all = degree_values(
      base, values, Degree::virtual_pipeline, values.virtual_pipelines, {1, 2, 3, 4, 5, 6, 8, 10});
  Axis axis = axis_of("virtual_pipeline", kChunksFlag, all);
  axis.apply = [all](Plan& p, std::size_t v) { p.parallel.virtual_pipeline = all[v]; };
  axis.rules = {
      unsupported(Degree::virtual_pipeline),
      {"chunks of stages need a pipeline of several stages", kPipelineFlag,
       [](const Plan& p, std::size_t) {
         return p.parallel.virtual_pipeline > 1 && p.parallel.pipeline == 1;
       }},
      {"fewer blocks than chunks of stages", kModelFlag, [model](const Plan& p, std::size_t) {
         return block_count(*model) + 2 < p.parallel.pipeline * p.parallel.virtual_pipeline;
       }}};
  return axis;
}

/// A schedule of several chunks is the interleaved one, and that needs several.
Axis schedule_axis(const Plan& base, const AxisValues& values,
                   const std::vector<std::string>& chunks) {
  std::vector<PipelineSchedule> all = values.schedules;
  if (all.empty()) {
    all = {PipelineSchedule::one_f_one_b};
    if (chunks.size() > 1) all.push_back(PipelineSchedule::interleaved);
    if (std::find(all.begin(), all.end(), base.parallel.schedule) == all.end())
      all.push_back(base.parallel.schedule);
  }
  Axis axis;
  axis.name = "schedule";
  axis.flag = "--pipeline-schedules";
  for (const PipelineSchedule schedule : all) axis.values.emplace_back(name_of(schedule));
  axis.apply = [all](Plan& p, std::size_t v) { p.parallel.schedule = all[v]; };
  axis.rules = {
      {"without pipeline stages one schedule stands for all", kPipelineFlag,
       [](const Plan& p, std::size_t value) { return p.parallel.pipeline == 1 && value > 0; }},
      {"the interleaved schedule is that of several chunks on each stage", kChunksFlag,
       [](const Plan& p, std::size_t) {
         return p.parallel.pipeline > 1 &&
                p.parallel.has_chunks() != (p.parallel.virtual_pipeline > 1);
       }},
      {"a V has two chunks on each stage, and is PyTorch's alone", kStrategyFlag,
       [](const Plan& p, std::size_t) {
         return p.parallel.pipeline > 1 && p.parallel.schedule == PipelineSchedule::zbv &&
                (p.parallel.virtual_pipeline != 2 || !traits_of(p).torch_pipelining);
       }}};
  return axis;
}

Axis balance_axis(const SharedModel& model, const Plan& base, const AxisValues& values) {
  std::vector<StageBalance> all = values.balances;
  if (all.empty()) {
    for (const FrameworkKind kind : searched_frameworks(base, values))
      for (const StageBalance balance : planning_of(kind).balances.get()) all.push_back(balance);
    std::sort(all.begin(), all.end());
    if (std::find(all.begin(), all.end(), base.parallel.balance) == all.end())
      all.push_back(base.parallel.balance);
  }
  Axis axis;
  axis.name = "balance";
  axis.flag = "--stage-balances";
  for (const StageBalance balance : all) axis.values.emplace_back(name_of(balance));
  axis.apply = [all, own = base.parallel](Plan& p, std::size_t v) {
    Parallel& q = p.parallel;
    q.balance = all[v];
    const bool as_given = q.pipeline == own.pipeline &&
                          q.virtual_pipeline == own.virtual_pipeline && q.balance == own.balance;
    q.stage_layers = as_given ? own.stage_layers : std::vector<std::int64_t>{};
  };
  axis.rules = {
      {"without pipeline stages one balance stands for all", kPipelineFlag,
       [](const Plan& p, std::size_t value) { return p.parallel.pipeline == 1 && value > 0; }},
      {"DeepSpeed balances stages by parameters, and Megatron-LM by blocks", kStrategyFlag,
       [](const Plan& p, std::size_t) {
         const bool by_parameters = p.parallel.balance == StageBalance::parameters;
         return p.parallel.pipeline > 1 &&
                by_parameters != (traits_of(p).balance == StageBalance::parameters);
       }},
      {"stages and chunks do not divide the blocks, balanced so", kModelFlag,
       [model](const Plan& p, std::size_t) {
         if (p.parallel.pipeline == 1) return false;
         Plan alone = p;  // what later axes decide has rules of its own there
         alone.workload.gradient_accumulation = p.parallel.pipeline;
         alone.framework.deepspeed.zero.offload_optimizer = {};
         return has_problem(*model, alone, Degree::pipeline) ||
                has_problem(*model, alone, Degree::virtual_pipeline);
       }}};
  return axis;
}

}  // namespace shardplan::degree_axes
