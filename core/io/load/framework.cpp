#include "load/framework.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/nearest.h"
#include "base/units.h"
#include "frameworks/registry.h"
#include "load/deepspeed.h"
#include "load/ds_config/version.h"
#include "load/megatron.h"

namespace shardplan {
namespace {

void read_ddp(ObjectReader& o, DdpOptions& ddp) {
  ddp.gradient_as_bucket_view = o.boolean("gradient_as_bucket_view").value_or(false);
  ddp.zero_redundancy_optimizer = o.boolean("zero_redundancy_optimizer").value_or(false);
  if (const auto cap = o.number("bucket_cap_mb", 0.001, 1e6))
    ddp.bucket_cap_bytes = static_cast<std::int64_t>(*cap * static_cast<double>(kMiB));
}

void read_fsdp2(ObjectReader& o, Fsdp2Options& fsdp2) {
  fsdp2.reshard_after_forward = o.boolean("reshard_after_forward").value_or(true);
  fsdp2.cpu_offload = o.boolean("cpu_offload").value_or(false);
  fsdp2.hybrid_shard_size = o.integer("hybrid_shard_size", 1, 1 << 20);
  if (const auto type = o.choice("reduce_dtype", dtype_names(kTrainingType)))
    fsdp2.reduce_dtype = parse_dtype(*type);
}

/// {"device": ...} of the short form: "offload_optimizer": "cpu".
Json offload_block(ObjectReader& o, std::string_view key) {
  const auto device = o.choice(key, {"none", "cpu", "nvme"});
  if (!device || *device == "none") return nullptr;
  Json block{{"device", *device}};
  if (*device == "nvme") block["nvme_path"] = "/local_nvme";
  return block;
}

/// The ds_config that the short form stands for.
Json short_form(ObjectReader& o, std::int64_t stage) {
  Json zero{{"stage", stage}};
  for (const auto* key : {"offload_optimizer", "offload_param"}) {
    const Json block = offload_block(o, key);
    if (!block.is_null()) zero[key] = block;
  }
  return Json{{"zero_optimization", zero}};
}

void read_deepspeed(ObjectReader& o, FrameworkRead& read, std::int64_t world,
                    const JobContext& context, std::vector<std::string>& assumed) {
  if (const auto version = o.text("version")) {
    const auto parsed = parse_deepspeed_version(*version);
    if (!parsed) o.fail("version", fmt::format("found '{}'", *version), "a version such as 0.19.6");
    read.framework.deepspeed.version = *parsed;
  }
  read.auto_resolver =
      o.choice("auto", {"hf_trainer", "accelerate", "nobody"}).value_or("hf_trainer");
  const bool injects = o.boolean("kernel_inject").value_or(false);
  const auto most = o.integer("max_out_tokens", 1, std::int64_t{1} << 31);
  if (most && !injects)
    o.fail("max_out_tokens", "given without kernel_inject", "\"kernel_inject\": true");
  if (injects) read.injection = {most.value_or(1024), world};
  DeepSpeedOptions& options = read.framework.deepspeed;
  options.activation_checkpointing.called = calls_deepspeed_checkpointing(o);
  options.moe = read_moe(o);
  const Json* config = o.find("ds_config");
  const auto stage = o.integer("zero_stage", 0, 3);
  if (config == nullptr) {
    if (!stage && !injects) assumed.push_back("framework: ZeRO stage 3");
    read.ds_config = short_form(o, stage.value_or(injects ? 0 : 3));
    read.ds_file = o.file();
    return;
  }
  read.from_file = true;
  if (stage)
    o.fail("zero_stage", "given beside ds_config, which has a stage of its own", "one of the two");
  if (config->is_object()) {
    read.ds_config = *config;
    read.ds_file = o.file() + ": " + o.path_of("ds_config");
  } else if (config->is_string()) {
    const std::filesystem::path path(config->get<std::string>());
    const std::filesystem::path full =
        path.is_absolute() ? path : std::filesystem::path(context.directory) / path;
    read.ds_config = read_json_file(full.string());
    read.ds_file = full.string();
  } else {
    o.fail("ds_config", say("found {}", describe(*config)), "a path or an object");
  }
}

}  // namespace

FrameworkRead read_framework(ObjectReader& job, std::int64_t world, const JobContext& context,
                             std::vector<std::string>& assumed) {
  FrameworkRead read;
  static const Json kEmpty = Json::object();
  const Json* value = job.find("framework");
  Json named;
  if (value != nullptr && value->is_string()) {
    named = Json{{"name", *value}};
    value = &named;
  }
  ObjectReader o(value == nullptr ? kEmpty : *value, job.file(), job.path_of("framework"));
  std::vector<std::string> names;
  for (const FrameworkTraits* known : all_frameworks()) names.emplace_back(known->name.get());
  const auto name = o.choice("name", names);
  if (name) {
    read.framework.kind = *framework_named(*name);
  } else {
    read.framework.kind = world == 1 ? FrameworkKind::single : FrameworkKind::deepspeed;
    assumed.push_back(fmt::format("framework: {}", name_of(read.framework.kind)));
  }
  switch (read.framework.kind) {
    case FrameworkKind::single:
      break;
    case FrameworkKind::ddp:
      read_ddp(o, read.framework.ddp);
      break;
    case FrameworkKind::fsdp2:
      read_fsdp2(o, read.framework.fsdp2);
      break;
    case FrameworkKind::deepspeed:
      read_deepspeed(o, read, world, context, assumed);
      break;
    case FrameworkKind::megatron:
      read.framework.megatron = read_megatron(o);
      break;
    case FrameworkKind::native:
      read.framework.native.zero_stage = o.integer("zero_stage", 0, 3).value_or(0);
      if (o.choice("device", {"cuda", "host"}) == "host")
        read.framework.native.device = NativeDevice::host;
      break;
  }
  o.finish();
  return read;
}

}  // namespace shardplan
