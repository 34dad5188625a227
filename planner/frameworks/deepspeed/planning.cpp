// DeepSpeed.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "calibrate/step_fits.h"
#include "frameworks/deepspeed/auto_resolver.h"
#include "frameworks/deepspeed/changes.h"
#include "frameworks/deepspeed/ds_config.h"
#include "frameworks/deepspeed/launch.h"
#include "frameworks/deepspeed/option_table.h"
#include "frameworks/deepspeed/search.h"
#include "frameworks/deepspeed/words.h"
#include "frameworks/usual_planning.h"
#include "job/fields.h"
#include "save/options.h"

namespace shardplan {
namespace {

constexpr std::array kDeepSpeedBalances{StageBalance::parameters};

constexpr ExportFormat kDsConfigFormat{
    "ds_config", "ds_config.json", [](const Json&, const Job& job, const Estimate&) {
      return ds_config_of(job.plan, job.ds_config, job.autos).dump(2) + "\n";
    }};

std::string deepspeed_group(const Plan& plan) {
  return fmt::format("deepspeed stage {}", plan.framework.deepspeed.zero.stage);
}

std::vector<const ExportFormat*> deepspeed_formats(const Plan&) {
  return {&kDsConfigFormat, &kAccelerateFormat, &kLaunchFormat, &kJobFormat};
}

/// accelerate refuses precision, accumulation and clipping beside a deepspeed_config_file, which
/// has them (utils/dataclasses.py, DeepSpeedPlugin).
std::string deepspeed_accelerate(const Plan& plan) {
  std::string text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n";
  text += "  deepspeed_config_file: ds_config.json\n";
  if (plan.cluster.nodes > 1) text += "  deepspeed_multinode_launcher: standard\n";
  return text + fmt::format("  zero3_init_flag: {}\n", plan.framework.deepspeed.zero.stage == 3);
}

/// What its ds_config.json does not say.
void write_deepspeed(Json& framework, const Plan& plan) {
  const DeepSpeedOptions& o = plan.framework.deepspeed;
  framework["version"] = fmt::format("{}.{}.{}", o.version.major, o.version.minor, o.version.patch);
  framework["auto"] = name_of(AutoResolver::none);
  framework["ds_config"] = "ds_config.json";
  if (o.activation_checkpointing.called && plan.checkpointing == Checkpointing::full)
    framework["checkpoint_function"] = "deepspeed";
  if (o.moe) write_options(framework["moe"] = Json::object(), kDeepSpeedMoeTable, *o.moe);
}

void inline_ds_config(Json& job, const Plan& plan) {
  set_field(job, "/framework/ds_config", ds_config_of(plan, nullptr, {}));
}

PeerJob deepspeed_peers(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  PeerJob job;
  job.zero2 = zero.stage == 1 || zero.stage == 2;
  job.zero3 = zero.stage == 3;
  job.offloads_optimizer = zero.offload_optimizer.device != OffloadDevice::none;
  job.offloads_parameters = zero.offload_param.device != OffloadDevice::none;
  return job;
}

}  // namespace

extern const FrameworkPlanning kDeepSpeedPlanning;
constinit const FrameworkPlanning kDeepSpeedPlanning{
    .kind = FrameworkKind::deepspeed,
    .words = deepspeed_words,
    .group = deepspeed_group,
    .own_format = &kDsConfigFormat,
    .formats = deepspeed_formats,
    .accelerate = deepspeed_accelerate,
    .launch = deepspeed_launch,
    .write_options = write_deepspeed,
    .inline_files = inline_ds_config,
    .is_searched = true,
    .strategies = deepspeed_strategies,
    .rules = deepspeed_rules,
    .take_degree = take_deepspeed_degree,
    .take_precision = take_deepspeed_precision,
    .take_offloads = usual::no_offloads,
    .tries_offloads = true,
    .can_offload = true,
    .needs_pipeline_module = true,
    .balances = std::span<const StageBalance>(kDeepSpeedBalances),
    .moves_to_zero = true,
    .offers_adapters = true,
    .lighter = deepspeed_changes,
    .offloads = deepspeed_offloads,
    .peers = deepspeed_peers,
    .fit = &kDeepSpeedSteps,
    .fits_host = false,
};

}  // namespace shardplan
