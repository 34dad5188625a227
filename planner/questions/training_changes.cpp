#include "questions/training_changes.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "job/cluster_json.h"
#include "job/fields.h"
#include "kernels/registry.h"
#include "optimizers/registry.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// Liger's, which never have all logits at once. Loading refuses model types that it leaves alone.
void add_fused_kernels(std::vector<Change>& changes, const Plan& plan) {
  if (plan.kernels.any() || plan.loss == LossKind::fused_linear) return;
  if (plan.trainer->supervises_by_token_loss) return;  // over all logits, whatever Liger patches
  changes.push_back({"Liger's fused kernels, with a loss that never has all logits",
                     "use_liger_kernel: true; --kernels liger",
                     nullptr,
                     "kernels",
                     {{"/kernels", "liger"}},
                     Sacrifice::nothing});
}

/// For networks that Liger leaves alone, as ALST's trainer does it. Loading refuses frameworks and
/// trainers that have none.
void add_tiled_loss(std::vector<Change>& changes, const Job& job) {
  const Plan& plan = job.plan;
  const bool whole = plan.loss == LossKind::cross_entropy && !plan.kernels.any();
  if (!whole || plan.trainer != &default_trainer()) return;
  if (find_liger_patch(job.model.facts.model_type) != nullptr) return;
  changes.push_back({"the loss and the head over parts of the rows",
                     "DeepSpeed's TiledFusedLogitsLoss; --loss tiled",
                     nullptr,
                     "kernels",
                     {{"/loss", "tiled"}},
                     Sacrifice::nothing});
}

/// Where the framework can, as much in one piece as it can.
void add_compile(std::vector<Change>& changes, const Plan& plan) {
  const std::optional<CompileScope> most = traits_of(plan).compiles;
  if (plan.compile || !most) return;
  const bool whole = *most == CompileScope::model && plan.trainer->compiles == *most;
  const Json said = whole ? Json(true) : Json{{"scope", "block"}};
  changes.push_back({whole ? "torch.compile" : "torch.compile, block by block",
                     "torch_compile: true; --compile true",
                     nullptr,
                     "kernels",
                     {{"/compile", said}},
                     Sacrifice::nothing});
}

/// Frozen parameters, and adapters beside them; of a job that has adapters, a narrower base alone.
void add_adapters(std::vector<Change>& changes, const Plan& plan) {
  const Workload& w = plan.workload;
  const FieldEdit narrow{"/workload/lora/quantization", "nf4_double"};
  const char* narrow_base = "QLoRA: LoRA over a base in 4 bits";
  if (w.lora) {
    if (w.lora->base == Quantization::none)
      changes.push_back({narrow_base,
                         "workload.lora.quantization: nf4_double",
                         nullptr,
                         "method",
                         {narrow},
                         Sacrifice::number_format});
    return;
  }
  if (!planning_of(plan).offers_adapters) return;
  const std::vector<FieldEdit> adapters{{"/workload/method", "lora"},
                                        {"/workload/lora", Json{{"rank", 16}}}};
  changes.push_back({"LoRA of rank 16 in place of all parameters", "--method lora", nullptr,
                     "method", adapters, Sacrifice::trained_parameters});
  std::vector<FieldEdit> both = adapters;
  both.push_back(narrow);
  changes.push_back({narrow_base, "--method lora, workload.lora.quantization: nf4_double", nullptr,
                     "method", std::move(both), Sacrifice::trained_parameters});
}

/// Where there is an optimizer of the same name with states in 8 bits.
void add_narrow_states(std::vector<Change>& changes, const Plan& plan) {
  const std::string narrow = fmt::format("{}_8bit", plan.optimizer.kind->name);
  if (find_optimizer(narrow) == nullptr) return;
  changes.push_back({"optimizer states in 8 bits",
                     fmt::format("--optimizer {}", narrow),
                     nullptr,
                     "optimizer",
                     {{"/optimizer", narrow}},
                     Sacrifice::number_format});
}

/// Parameters, gradients and states that have no copy in fp32; beside adapters, which stay in fp32,
/// what is frozen, as checkpoints have it.
void add_narrow_parameters(std::vector<Change>& changes, const Plan& plan) {
  const bool keeps_fp32 = size_of(plan.precision.params) > size_of(plan.precision.compute);
  if (!keeps_fp32 || plan.precision.compute != DType::bf16) return;
  const bool frozen = plan.workload.lora.has_value();
  changes.push_back(
      {frozen ? "the frozen model in bf16" : "parameters, gradients and states in bf16",
       frozen ? "dtype: bfloat16; --precision bf16-pure" : "--precision bf16-pure",
       nullptr,
       "precision",
       {{"/precision", "bf16-pure"}},
       frozen ? Sacrifice::nothing : Sacrifice::number_format});
}

/// For frameworks that keep all states on the GPU: DeepSpeed puts them on the host.
void add_host_states(std::vector<Change>& changes, const Plan& plan) {
  if (zero_options(plan) != nullptr || plan.workload.lora || !plan.parallel.only_data()) return;
  const auto add = [&](std::string what, int stage, bool parameters) {
    Json framework{{"name", "deepspeed"}, {"zero_stage", stage}, {"offload_optimizer", "cpu"}};
    if (parameters) framework["offload_param"] = "cpu";
    changes.push_back(
        {std::move(what),
         fmt::format("--framework deepspeed --zero-stage {} --offload-optimizer cpu{}", stage,
                     parameters ? " --offload-param cpu" : ""),
         nullptr,
         "framework",
         {{"/framework", std::move(framework)}, {"/precision", "bf16-master"}},
         Sacrifice::nothing});
  };
  add("optimizer states on the host, with DeepSpeed ZeRO-2", 2, false);
  add("optimizer states and parameters on the host, with DeepSpeed ZeRO-3", 3, true);
}

/// Larger clusters that people rent: machines of two, four and eight GPUs, then more machines, to
/// eight times as many.
std::vector<Cluster> larger(const Cluster& cluster) {
  constexpr std::int64_t kMostTimes = 8;
  std::vector<Cluster> all;
  Cluster more = cluster;
  more.price_per_hour.reset();  // was that of fewer
  more.spot_price_per_hour.reset();
  for (const std::int64_t gpus : {2, 4, 8}) {
    if (gpus <= cluster.gpus_per_node) continue;
    more.gpus_per_node = gpus;
    all.push_back(more);
  }
  for (const double times : {1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0}) {
    const auto nodes =
        static_cast<std::int64_t>(std::ceil(times * static_cast<double>(cluster.nodes)));
    const std::int64_t before = all.empty() ? cluster.world() : all.back().world();
    more.nodes = nodes;
    if (more.world() > before && more.world() <= kMostTimes * cluster.world()) all.push_back(more);
  }
  return all;
}

/// Words of the command line for it: "3x8xH100-SXM5-80GB".
std::string words_of(const Cluster& cluster) {
  const std::string node = fmt::format("{}x{}", cluster.gpus_per_node, cluster.gpu.name);
  return cluster.nodes > 1 ? fmt::format("{}x{}", cluster.nodes, node) : node;
}

/// More GPUs, among which states are divided.
void add_gpus(std::vector<Change>& changes, const Plan& plan, const Json& written) {
  if (!plan.parallel.only_data()) return;
  const auto gpu = field_of(written, "/cluster/gpu");
  const bool divides = traits_of(plan).shards_parameters(plan);
  for (const Cluster& more : larger(plan.cluster)) {
    std::vector<FieldEdit> fields{{"/cluster", cluster_json(more, gpu && gpu->is_object())}};
    if (!divides) fields.push_back({"/framework", Json{{"name", "fsdp2"}}});
    const std::int64_t gpus = more.world();
    changes.push_back({divides ? fmt::format("the same over {} GPUs", gpus)
                               : fmt::format("FSDP2 over {} GPUs", gpus),
                       fmt::format("{}{}", words_of(more), divides ? "" : " --framework fsdp2"),
                       nullptr, "framework", std::move(fields), Sacrifice::more_gpus});
  }
}

}  // namespace

std::vector<Change> training_changes(const Job& job, const Json& written) {
  std::vector<Change> changes;
  add_fused_kernels(changes, job.plan);
  add_tiled_loss(changes, job);
  add_compile(changes, job.plan);
  add_narrow_states(changes, job.plan);
  add_narrow_parameters(changes, job.plan);
  add_adapters(changes, job.plan);
  add_host_states(changes, job.plan);
  add_gpus(changes, job.plan, written);
  return changes;
}

}  // namespace shardplan
