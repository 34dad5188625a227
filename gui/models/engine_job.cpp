#include "models/engine_job.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "frameworks/registry.h"
#include "job/fields.h"
#include "models/text.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStoragePath = "/run/nvme/path";

std::string engine_name() {
  for (const FrameworkTraits* framework : all_frameworks())
    if (framework->is_own_engine) return std::string(framework->name.get());
  throw std::logic_error("no framework is the engine");
}

/// What the engine keeps in one number format, others keep in two under autocast.
Json engine_precision(const Plan& plan) {
  const std::string& name = plan.precision.name;
  for (const auto* known : {"fp32", "bf16-master", "bf16-pure", "fp16-master"})
    if (name == known) return name;
  return "bf16-master";
}

/// The engine updates on the host what is kept there, or on NVMe.
Json engine_framework(const Plan& plan) {
  Json framework{{"name", engine_name()}, {"zero_stage", 0}};
  const ZeroOptions* zero = zero_options(plan);
  if (zero == nullptr) {
    if (traits_of(plan).shards_parameters(plan)) framework["zero_stage"] = 3;
    return framework;
  }
  framework["zero_stage"] = zero->stage;
  const OffloadDevice parameters = zero->offload_param.device;
  const bool moves_parameters = parameters != OffloadDevice::none;
  OffloadDevice states = zero->offload_optimizer.device;
  if (moves_parameters && states == OffloadDevice::none) states = OffloadDevice::cpu;
  if (states != OffloadDevice::none) framework["offload_optimizer"] = name_of(states);
  if (moves_parameters) framework["offload_param"] = name_of(parameters);
  return framework;
}

/// The folder that DeepSpeed swaps to; of this machine only where it is there.
std::string storage_of(const Plan& plan, EngineDevice device) {
  const ZeroOptions* zero = zero_options(plan);
  if (zero == nullptr) return {};
  const bool states = zero->offload_optimizer.device == OffloadDevice::nvme;
  if (!states && zero->offload_param.device != OffloadDevice::nvme) return {};
  const std::string& folder =
      states ? zero->offload_optimizer.nvme_path : zero->offload_param.nvme_path;
  std::error_code error;
  return device == EngineDevice::gpus || fs::is_directory(folder, error) ? folder : std::string();
}

}  // namespace

Json with_whole_paths(Json job, const std::string& directory) {
  for (const auto* pointer : {"/framework/ds_config", "/model", "/run/data", "/run/weights"}) {
    const auto said = field_of(job, pointer);
    std::error_code error;
    if (!said || !said->is_string()) continue;
    const fs::path path = fs::path(directory) / said->get<std::string>();
    if (fs::exists(path, error)) set_field(job, pointer, fs::absolute(path).string());
  }
  return job;
}

bool runs_on_engine(const Job& job) {
  return traits_of(job.plan).is_own_engine;
}

Json engine_job(const Json& written, const Job& job, const std::string& directory,
                EngineDevice device) {
  Json out = with_whole_paths(written, directory);
  if (!runs_on_engine(job)) {
    const Workload& w = job.plan.workload;
    out["framework"] = engine_framework(job.plan);
    out["workload"] = Json{{"micro_batch", w.micro_batch},
                           {"sequence_length", w.sequence_length},
                           {"gradient_accumulation", w.gradient_accumulation}};
    out["precision"] = engine_precision(job.plan);
    for (const auto* key : {"parallel", "trainer", "kernels", "compile", "attention", "loss"})
      out.erase(key);
    if (const std::string folder = storage_of(job.plan, device); !folder.empty())
      set_field(out, kStoragePath, folder);
  } else if (out["framework"].is_string()) {
    out["framework"] = Json{{"name", engine_name()}};
  }
  out["framework"]["device"] = device == EngineDevice::host ? "host" : "cuda";
  return out;
}

Json with_storage_here(Json job, const std::string& folder) {
  const auto on_nvme = [&](const char* pointer) {
    const auto place = field_of(job, pointer);
    return place && *place == name_of(OffloadDevice::nvme);
  };
  const bool any = on_nvme("/framework/offload_optimizer") || on_nvme("/framework/offload_param");
  if (any && !field_of(job, kStoragePath)) set_field(job, kStoragePath, folder);
  return job;
}

Json example_engine_job() {
  return Json{{"schema", "shardplan.job/1"},
              {"model",
               {{"model_type", "gpt2"},
                {"n_embd", 64},
                {"n_layer", 3},
                {"n_head", 4},
                {"n_positions", 64},
                {"vocab_size", 256}}},
              {"cluster", "4xA100-40GB"},
              {"framework", {{"name", engine_name()}, {"zero_stage", 2}, {"device", "host"}}},
              {"workload", {{"micro_batch", 4}, {"sequence_length", 64}}},
              {"precision", "bf16-master"},
              {"optimizer", {{"name", "adamw"}, {"lr", 2e-3}, {"weight_decay", 0.1}}},
              {"run",
               {{"steps", 30},
                {"warmup", 5},
                {"scheduler",
                 {{"type", "WarmupLR"},
                  {"params", {{"warmup_num_steps", 10}, {"warmup_type", "linear"}}}}}}}};
}

QString cluster_command(const Job& job, const QString& file) {
  const Cluster& c = job.plan.cluster;
  const QString run = QStringLiteral("shardplan-validate %1 --record run.json").arg(file);
  if (c.nodes == 1) return run;
  return QStringLiteral(
             "torchrun --nnodes %1 --nproc-per-node %2 --rdzv-backend c10d --rdzv-endpoint "
             "HEAD:29500 --no-python %3")
      .arg(c.nodes)
      .arg(c.gpus_per_node)
      .arg(run);
}

}  // namespace shardplan::gui
