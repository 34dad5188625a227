#include "frameworks/fsdp2/python.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "frameworks/registry.h"

namespace shardplan {
namespace {

std::string_view torch_name(DType type) {
  switch (type) {
    case DType::bf16:
      return "torch.bfloat16";
    case DType::f16:
      return "torch.float16";
    default:
      return "torch.float32";
  }
}

std::string_view python(bool value) {
  return value ? "True" : "False";
}

/// How blocks are recomputed: Hugging Face's own switch, or PyTorch's policy for saving the results
/// of matrix products and attention.
std::string checkpointing_lines(Checkpointing how) {
  if (how == Checkpointing::none) return "";
  if (how == Checkpointing::full) return "        checkpoint(block)\n";
  return "        checkpoint(block, context_fn=save_products)\n";
}

std::string checkpointing_imports(Checkpointing how) {
  if (how == Checkpointing::none) return "";
  std::string text = "from torch.distributed._composable import checkpoint  # before fully_shard\n";
  if (how == Checkpointing::full) return text;
  return text +
         "from torch.utils.checkpoint import CheckpointPolicy, "
         "create_selective_checkpoint_contexts\n"
         "\n"
         "aten = torch.ops.aten\n"
         "SAVED = {\n"
         "    aten.mm.default,\n"
         "    aten.bmm.default,\n"
         "    aten.addmm.default,\n"
         "    aten._scaled_dot_product_flash_attention.default,\n"
         "    aten._scaled_dot_product_efficient_attention.default,\n"
         "    aten._scaled_dot_product_cudnn_attention.default,\n"
         "}\n"
         "\n"
         "\n"
         "def save_products():\n"
         "    def policy(context, op, *args, **kwargs):\n"
         "        saved = op in SAVED\n"
         "        return CheckpointPolicy.MUST_SAVE if saved else "
         "CheckpointPolicy.PREFER_RECOMPUTE\n"
         "\n"
         "    return create_selective_checkpoint_contexts(policy)\n";
}

/// Copies of the states, and the GPUs that divide one, which are next to each other.
std::string mesh(const Plan& plan) {
  if (plan.copies() == 1) return "\"cuda\", (WORLD,)";
  return fmt::format("\"cuda\", ({}, {}), mesh_dim_names=(\"replicate\", \"shard\")", plan.copies(),
                     plan.shard_ranks());
}

std::string policy(const Plan& plan) {
  const Fsdp2Options& o = plan.framework.fsdp2;
  std::string text;
  if (plan.precision.compute != plan.precision.params || o.reduce_dtype)
    text += fmt::format("    mp_policy=MixedPrecisionPolicy(param_dtype={}, reduce_dtype={}),\n",
                        torch_name(plan.precision.compute),
                        torch_name(o.reduce_dtype.value_or(plan.precision.compute)));
  text += fmt::format("    offload_policy={},\n",
                      o.cpu_offload ? "CPUOffloadPolicy(pin_memory=True)" : "OffloadPolicy()");
  return text;
}

}  // namespace

std::string fsdp2_python(const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  if (plan.framework.kind != FrameworkKind::fsdp2)
    throw InputError({.key = "framework.name",
                      .message = "fully_shard is FSDP2's, and the job runs under " +
                                 std::string(name_of(plan.framework.kind)),
                      .expected = "fsdp2"});
  std::string text = header_comment(job, e);
  text +=
      "import torch\n"
      "from torch.distributed.device_mesh import init_device_mesh\n"
      "from torch.distributed.fsdp import (\n"
      "    CPUOffloadPolicy,\n    MixedPrecisionPolicy,\n    OffloadPolicy,\n    fully_shard,\n)\n";
  text += checkpointing_imports(plan.checkpointing);
  text += fmt::format(
      "\nWORLD = {}\nMICRO_BATCH = {}\nACCUMULATION = {}\nSEQUENCE = {}\n"
      "PARAMETER_DTYPE = {}  # of the shards, the gradients and the optimizer\n",
      plan.cluster.world(), plan.workload.micro_batch, plan.workload.gradient_accumulation,
      plan.workload.sequence_length, torch_name(plan.precision.params));
  const std::int64_t tensor = plan.parallel.tensor;
  if (tensor > 1) text += fmt::format("TENSOR = {}  # GPUs that share each layer\n", tensor);
  text += fmt::format("FSDP_KWARGS = dict(\n    reshard_after_forward={},\n{})\n",
                      python(plan.framework.fsdp2.reshard_after_forward), policy(plan));
  if (tensor > 1)
    text +=
        "\n\n"
        "def make_mesh():\n"
        "    \"\"\"For from_pretrained(..., tp_plan=\"auto\", "
        "device_mesh=mesh[\"tensor\"]).\"\"\"\n"
        "    return init_device_mesh(\n"
        "        \"cuda\", (WORLD // TENSOR, TENSOR), mesh_dim_names=(\"data\", \"tensor\")\n"
        "    )\n";
  text += fmt::format(
      "\n\n"
      "def shard(model, blocks{}):\n"
      "    \"\"\"`blocks` are the repeated layers, such as model.model.layers.\"\"\"\n"
      "    mesh = {}\n"
      "    model.to(PARAMETER_DTYPE)\n",
      tensor > 1 ? ", mesh" : "",
      tensor > 1 ? "mesh[\"data\"]" : "init_device_mesh(" + mesh(plan) + ")");
  text += "    for block in blocks:\n" + checkpointing_lines(plan.checkpointing) +
          "        fully_shard(block, mesh=mesh, **FSDP_KWARGS)\n"
          "    return fully_shard(model, mesh=mesh, **FSDP_KWARGS)\n";
  return text;
}

}  // namespace shardplan
