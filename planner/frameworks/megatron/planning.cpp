// Megatron-LM.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "calibrate/step_fits.h"
#include "frameworks/megatron/arguments.h"
#include "frameworks/megatron/changes.h"
#include "frameworks/megatron/saved_inputs.h"
#include "frameworks/usual_planning.h"
#include "optimizers/description.h"
#include "report/words.h"

namespace shardplan {
namespace {

constexpr std::array kBalances{StageBalance::blocks, StageBalance::blocks_and_ends};

report::Text megatron_words(const Framework& framework) {
  return report::message(framework.megatron.distributed_optimizer ? "framework.megatron_distributed"
                                                                  : "framework.megatron");
}

/// The arguments and the command alone, as people keep them.
std::string megatron_script(const Json&, const Job& job, const Estimate& e) {
  const Cluster& c = job.plan.cluster;
  if (job.plan.framework.kind != FrameworkKind::megatron)
    throw InputError({.file = "<command line>",
                      .key = "framework.name",
                      .message = "Megatron-LM's arguments are for plans that it runs",
                      .expected = "megatron"});
  if (job.plan.workload.lora)
    throw InputError({.file = "<command line>",
                      .key = "workload.method",
                      .message = "Megatron-LM's arguments have no adapters (ms-swift's have)",
                      .expected = "full"});
  return "#!/usr/bin/env bash\n" + header_comment(job, e) + megatron_arguments(job) +
         fmt::format(
             "torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py \\\n"
             "  \"${{network[@]}}\" --vocab-size {} \\\n  \"${{arguments[@]}}\" \"$@\"\n",
             c.nodes, c.gpus_per_node, job.model.facts.vocabulary);
}

constexpr ExportFormat kMegatronFormat{"megatron", "megatron.sh", megatron_script};

/// pretrain_gpt.py has no adapters; those that a job can have are mcore-bridge's.
std::vector<const ExportFormat*> megatron_formats(const Plan& plan) {
  if (plan.workload.lora) return {&kJobFormat};
  return {&kLaunchFormat, &kJobFormat};
}

/// What has no effect is not said.
void write_megatron(Json& framework, const Plan& plan) {
  usual::write_options(framework, plan);
  framework["distribute_saved_activations"] = distributes_saved_activations(plan);
  if (!plan.parallel.sequence_parallel) framework.erase("tp_comm_overlap");
}

Launch megatron_launch(const Job& job) {
  Launch launch;
  launch.program =
      "# PROGRAM.py: Megatron-LM's pretrain_gpt.py; data, tokenizer and schedule are yours\n";
  launch.arguments = megatron_arguments(job);
  launch.run = "\"$program\" \"${network[@]}\" \"${arguments[@]}\" \"$@\"";
  return launch;
}

/// The distributed optimizer, which costs nothing that counts, with gradients whole and divided;
/// without it where the job says so.
void megatron_strategies(std::vector<Strategy>& all, const Plan& base,
                         std::span<const std::int64_t>) {
  Framework framework = usual::own_or_default(base, FrameworkKind::megatron);
  MegatronOptions& options = framework.megatron;
  if (!options.distributed_optimizer) all.push_back({"Megatron-LM, whole optimizer", framework});
  options.distributed_optimizer = true;
  options.shard_gradients = false;
  all.push_back({"Megatron-LM, divided optimizer", framework});
  options.shard_gradients = true;
  all.push_back({"Megatron-LM, divided gradients", framework});
}

/// The limits of core/frameworks/megatron/problems.cpp.
std::vector<FrameworkRule> megatron_rules(const RuleContext&) {
  return {{"strategy",
           false,
           {"Megatron-LM trains with Adam, SGD or Muon", "--optimizer",
            [](const Plan& p, std::size_t) { return p.optimizer.kind->megatron.empty(); }}},
          {"precision",
           false,
           {"Megatron-LM has no autocast, and always keeps master weights",
            "--frameworks/--zero-stages", [](const Plan& p, std::size_t) {
              return p.precision.autocast() ||
                     (p.precision.params != DType::f32 && !p.precision.master);
            }}}};
}

}  // namespace

extern const FrameworkPlanning kMegatronPlanning;
constinit const FrameworkPlanning kMegatronPlanning{
    .kind = FrameworkKind::megatron,
    .words = megatron_words,
    .group = usual::group,
    .own_format = &kMegatronFormat,
    .formats = megatron_formats,
    .accelerate = usual::accelerate_block,
    .launch = megatron_launch,
    .write_options = write_megatron,
    .inline_files = usual::nothing_inlined,
    .is_searched = true,
    .strategies = megatron_strategies,
    .rules = megatron_rules,
    .take_degree = usual::no_degree,
    .take_precision = usual::no_precision,
    .take_offloads = usual::no_offloads,
    .tries_offloads = false,
    .can_offload = false,
    .needs_pipeline_module = false,
    .balances = std::span<const StageBalance>(kBalances),
    .moves_to_zero = false,
    .offers_adapters = false,
    .lighter = megatron_changes,
    .offloads = usual::no_offload_changes,
    .peers = usual::no_peers,
    .fit = &kMegatronSteps,
    .fits_host = false,
};

}  // namespace shardplan
