#include "frameworks/usual_planning.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "frameworks/registry.h"
#include "kernels/registry.h"
#include "save/checkpointing.h"
#include "save/options.h"

namespace shardplan::usual {

std::string group(const Plan& plan) {
  return std::string(name_of(plan.framework.kind));
}

std::vector<const ExportFormat*> trainer_formats(const Plan& plan) {
  if (plan.parallel.tensor > 1) return {&kLaunchFormat, &kJobFormat};
  return {&kAccelerateFormat, &kLaunchFormat, &kJobFormat};
}

std::string accelerate_precision(const Plan& plan) {
  const DType compute = plan.precision.compute;
  return fmt::format("mixed_precision: {}\ngradient_accumulation_steps: {}\n",
                     compute == DType::bf16  ? "bf16"
                     : compute == DType::f16 ? "fp16"
                                             : "'no'",
                     plan.workload.gradient_accumulation);
}

std::string accelerate_block(const Plan& plan) {
  return fmt::format("distributed_type: {}\n", plan.cluster.world() > 1 ? "MULTI_GPU" : "'NO'") +
         accelerate_precision(plan);
}

namespace {

/// All that Liger patches for the model, or those of the list alone.
std::string liger_arguments(const KernelRequest& kernels) {
  std::string text = "--use_liger_kernel true";
  if (kernels.patches) return text;
  Json chosen;
  for (std::size_t i = 0; i < kKernelNames; ++i)
    chosen[std::string(fused_kernels()[i]->name)] = (kernels.names >> i & 1U) != 0;
  return text + fmt::format(" --liger_kernel_config '{}'", chosen.dump());
}

}  // namespace

namespace {

/// What TrainingArguments say of checkpointing (transformers 5.17, gradient_checkpointing_kwargs).
/// Blocks by number and operations are for the program to choose.
std::vector<std::string> checkpointing_arguments(const Plan& plan) {
  const CheckpointShare& share = plan.checkpoint_share;
  const bool each_nth = plan.keeps_some_blocks() && share.every > 0;
  if (plan.checkpointing != Checkpointing::full && !each_nth) {
    if (share == CheckpointShare{}) return {};
    return {fmt::format("# checkpointing {}: the program's to set, TrainingArguments cannot",
                        checkpointing_word(plan.checkpoint_choice()))};
  }
  std::vector<std::string> lines{"--gradient_checkpointing true"};
  std::string more;
  if (each_nth) more += fmt::format(", \"every_n_layers\": {}", share.every);
  if (share.offload) more += ", \"offload\": true";
  if (!more.empty())
    lines.push_back(
        fmt::format("--gradient_checkpointing_kwargs '{{\"use_reentrant\": false{}}}'", more));
  return lines;
}

}  // namespace

std::string trainer_arguments(const Plan& plan, DType type, std::string_view more) {
  const Workload& w = plan.workload;
  std::string text = "arguments=( # as TrainingArguments of Hugging Face have them\n";
  const auto add = [&](std::string line) { text += "  " + std::move(line) + "\n"; };
  add(fmt::format("--per_device_train_batch_size {}", w.micro_batch));
  add(fmt::format("--gradient_accumulation_steps {}", w.gradient_accumulation));
  add(fmt::format("--max_grad_norm {}", plan.gradient_clipping));
  if (type == DType::bf16) add("--bf16 true");
  if (type == DType::f16) add("--fp16 true");
  for (std::string& line : checkpointing_arguments(plan)) add(std::move(line));
  if (plan.activation_offloading != ActivationOffloading::none)
    add(plan.activation_offloading == ActivationOffloading::streams
            ? "--activation_offloading true  # of TRL's trainers: SFTConfig, DPOConfig"
            : "# activation offloading without streams: OffloadActivations(use_streams=False) "
              "around "
              "the step");
  if (plan.mlp_tiles > 0)
    add(fmt::format("# feed-forwards in {} parts: DeepSpeed's TiledMLP in the model's place",
                    plan.mlp_tiles));
  if (plan.loss == LossKind::tiled)
    add("# the loss over parts of the rows: DeepSpeed's TiledFusedLogitsLoss around lm_head");
  if (plan.kernels.any()) add(liger_arguments(plan.kernels));
  if (plan.compile) add("--torch_compile true");
  if (!more.empty()) add(std::string(more));
  return text + ")\n";
}

Launch trainer_launch(const Job& job) {
  Launch launch;
  const std::int64_t tensor = job.plan.parallel.tensor;
  if (tensor > 1)
    launch.notes = fmt::format(
        "# {} GPUs share each layer: from_pretrained(..., tp_plan=\"auto\",\n"
        "# device_mesh=mesh[\"tensor\"]); fsdp2.py makes the mesh.\n",
        tensor);
  launch.arguments = trainer_arguments(job.plan, job.plan.precision.compute);
  return launch;
}

void write_options(Json& framework, const Plan& plan) {
  shardplan::write_options(framework, *traits_of(plan).options.get(), plan.framework);
}

std::vector<FrameworkRule> no_rules(const RuleContext&) {
  return {};
}

Framework own_or_default(const Plan& base, FrameworkKind kind) {
  if (base.framework.kind == kind) return base.framework;
  Framework framework;
  framework.kind = kind;
  return framework;
}

}  // namespace shardplan::usual
