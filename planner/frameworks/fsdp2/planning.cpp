// PyTorch FSDP2.
#include <fmt/format.h>

#include <array>

#include "calibrate/step_fits.h"
#include "export/export.h"
#include "frameworks/fsdp2/python.h"
#include "frameworks/usual_planning.h"
#include "report/quantity.h"
#include "report/words.h"

namespace shardplan {
namespace {

constexpr ExportFormat kFsdp2Format{
    "fsdp2", "fsdp2.py",
    [](const Json&, const Job& job, const Estimate& e) { return fsdp2_python(job, e); }};

report::Text fsdp2_words(const Framework& framework) {
  if (const auto ranks = framework.fsdp2.hybrid_shard_size)
    return report::message("framework.fsdp2_hybrid", {{"ranks", report::count(*ranks)}});
  return report::message("framework.fsdp2");
}

/// torchtitan's.
constexpr std::array kFsdp2Balances{StageBalance::blocks_and_ends};

/// accelerate and a script without a trainer divide no experts and have no stages; accelerate's
/// tensor-parallel layers are transformers', whose tokens are whole, and a script has no
/// context_parallel.
std::vector<const ExportFormat*> fsdp2_formats(const Plan& plan) {
  std::vector<const ExportFormat*> formats = usual::trainer_formats(plan);
  const Parallel& p = plan.parallel;
  std::erase_if(formats, [](const ExportFormat* f) { return f->name == "accelerate"; });
  if (p.expert == 1 && p.pipeline == 1 && !p.sequence_parallel)
    formats.insert(formats.begin(), &kAccelerateFormat);
  if (p.expert > 1 || p.pipeline > 1 || p.context > 1 || p.sequence_parallel) return formats;
  formats.insert(formats.begin(), &kFsdp2Format);
  return formats;
}

/// accelerate's mesh of copies, of the GPUs that divide one, and of those that share layers or
/// sequences (parallelism_config.py); ranks of a context divide the states too.
std::string mesh_block(const Plan& plan) {
  const Parallel& p = plan.parallel;
  if (plan.copies() == 1 && p.tensor == 1 && p.context == 1) return "";
  std::string text = fmt::format(
      "parallelism_config:\n"
      "  parallelism_config_dp_replicate_size: {}\n"
      "  parallelism_config_dp_shard_size: {}\n",
      plan.copies(), plan.shard_ranks() / p.context);
  if (p.tensor > 1) text += fmt::format("  parallelism_config_tp_size: {}\n", p.tensor);
  if (p.context > 1)
    text += fmt::format(
        "  parallelism_config_cp_size: {}\n  parallelism_config_cp_comm_strategy: {}\n", p.context,
        plan.framework.fsdp2.rotation == KeyRotation::allgather ? "allgather" : "alltoall");
  return text;
}

std::string fsdp2_accelerate(const Plan& plan) {
  const Fsdp2Options& o = plan.framework.fsdp2;
  return fmt::format(
             "distributed_type: FSDP\n"
             "fsdp_config:\n"
             "  fsdp_version: 2\n"
             "  fsdp_auto_wrap_policy: {}\n"
             "  fsdp_reshard_after_forward: {}\n"
             "  fsdp_offload_params: {}\n"
             "  fsdp_activation_checkpointing: {}\n"
             "  fsdp_cpu_ram_efficient_loading: true\n"
             "  fsdp_state_dict_type: {}_STATE_DICT\n",
             o.units == Fsdp2Wrap::whole ? "NO_WRAP" : "TRANSFORMER_BASED_WRAP",
             o.reshard_after_forward, o.cpu_offload, plan.checkpointing == Checkpointing::full,
             o.state_dict_type == StateDictType::full ? "FULL" : "SHARDED") +
         mesh_block(plan) + usual::accelerate_precision(plan);
}

void fsdp2_strategies(std::vector<Strategy>& all, const Plan& base, std::span<const std::int64_t>) {
  Framework framework = usual::own_or_default(base, FrameworkKind::fsdp2);
  framework.fsdp2.reshard_after_forward = true;
  all.push_back({"FSDP2", framework});
  framework.fsdp2.reshard_after_forward = false;
  all.push_back({"FSDP2, not resharded", framework});
}

std::vector<FrameworkRule> fsdp2_rules(const RuleContext&) {
  return {{"parameter_offload",
           false,
           {"FSDP2 offloads parameters and optimizer together, to the host", "--optimizer-offloads",
            [](const Plan& p, std::size_t) {
              const ZeroOptions& asked = p.framework.deepspeed.zero;
              return asked.offload_param.device != asked.offload_optimizer.device;
            }}}};
}

/// A search keeps the devices that it has set in ZeRO's options, whatever the framework.
void take_fsdp2_offloads(Plan& plan) {
  const ZeroOptions& asked = plan.framework.deepspeed.zero;
  plan.framework.fsdp2.cpu_offload = asked.offload_param.device == OffloadDevice::cpu &&
                                     asked.offload_optimizer.device == OffloadDevice::cpu;
}

void fsdp2_offload_changes(std::vector<Change>& changes, const Plan& plan) {
  if (!plan.framework.fsdp2.cpu_offload)
    changes.push_back(
        usual::divided_on_host([](Plan& p) { p.framework.fsdp2.cpu_offload = true; }));
}

/// It shards what DeepSpeed's stage 3 does.
PeerJob fsdp2_peers(const Plan& plan) {
  PeerJob job;
  job.zero3 = true;
  job.offloads_optimizer = job.offloads_parameters = plan.framework.fsdp2.cpu_offload;
  return job;
}

}  // namespace

extern const FrameworkPlanning kFsdp2Planning;
constinit const FrameworkPlanning kFsdp2Planning{
    .kind = FrameworkKind::fsdp2,
    .words = fsdp2_words,
    .group = usual::group,
    .own_format = &kFsdp2Format,
    .formats = fsdp2_formats,
    .accelerate = fsdp2_accelerate,
    .launch = usual::trainer_launch,
    .write_options = usual::write_options,
    .inline_files = usual::nothing_inlined,
    .is_searched = true,
    .strategies = fsdp2_strategies,
    .rules = fsdp2_rules,
    .take_degree = usual::no_degree,
    .take_precision = usual::no_precision,
    .take_offloads = take_fsdp2_offloads,
    .tries_offloads = true,
    .can_offload = true,
    .needs_pipeline_module = true,
    .balances = std::span<const StageBalance>(kFsdp2Balances),
    .moves_to_zero = true,
    .offers_adapters = true,
    .lighter = usual::no_changes,
    .offloads = fsdp2_offload_changes,
    .peers = fsdp2_peers,
    .fit = &kFsdp2Steps,
    .fits_host = false,
};

}  // namespace shardplan
