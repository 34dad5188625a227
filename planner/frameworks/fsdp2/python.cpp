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
std::string checkpointing_lines(const Plan& plan) {
  constexpr std::string_view kWhole = "checkpoint(block)\n";
  switch (plan.checkpointing) {
    case Checkpointing::none:
      return "";
    case Checkpointing::full:
      return fmt::format("        {}", kWhole);
    case Checkpointing::blocks:
      return fmt::format("        if {}:\n            {}",
                         plan.checkpoint_share.every > 0 ? "(place + 1) % CHECKPOINT_EVERY == 0"
                                                         : "place < CHECKPOINT_FIRST",
                         kWhole);
    default:
      return "        checkpoint(block, context_fn=save_products)\n";
  }
}

/// The policy of selective checkpointing; torchtitan's counts the products without a bias.
std::string policy_lines(const Plan& plan) {
  if (plan.checkpointing != Checkpointing::selective_op)
    return "def save_products():\n"
           "    def policy(context, op, *args, **kwargs):\n"
           "        saved = op in SAVED\n"
           "        return CheckpointPolicy.MUST_SAVE if saved else "
           "CheckpointPolicy.PREFER_RECOMPUTE\n"
           "\n"
           "    return create_selective_checkpoint_contexts(policy)\n";
  return fmt::format(
      "RECOMPUTE_EVERY = {}  # of the products without a bias\n"
      "\n"
      "\n"
      "def save_products():\n"
      "    products = {{True: 0, False: 0}}\n"
      "\n"
      "    def policy(context, op, *args, **kwargs):\n"
      "        saved = op in SAVED\n"
      "        if op == aten.mm.default:\n"
      "            products[context.is_recompute] += 1\n"
      "            saved = products[context.is_recompute] % RECOMPUTE_EVERY != 0\n"
      "        return CheckpointPolicy.MUST_SAVE if saved else "
      "CheckpointPolicy.PREFER_RECOMPUTE\n"
      "\n"
      "    return create_selective_checkpoint_contexts(policy)\n",
      plan.checkpoint_share.every);
}

std::string checkpointing_imports(const Plan& plan) {
  if (plan.checkpointing == Checkpointing::none) return "";
  std::string text = "from torch.distributed._composable import checkpoint  # before fully_shard\n";
  const CheckpointShare& share = plan.checkpoint_share;
  if (plan.keeps_some_blocks())
    return text + (share.every > 0 ? fmt::format("\nCHECKPOINT_EVERY = {}\n", share.every)
                                   : fmt::format("\nCHECKPOINT_FIRST = {}\n", share.count));
  if (plan.checkpointing == Checkpointing::full) return text;
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
         "\n" +
         policy_lines(plan);
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
  text += checkpointing_imports(plan);
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
  text += std::string(plan.keeps_some_blocks() ? "    for place, block in enumerate(blocks):\n"
                                               : "    for block in blocks:\n") +
          checkpointing_lines(plan) +
          "        fully_shard(block, mesh=mesh, **FSDP_KWARGS)\n"
          "    return fully_shard(model, mesh=mesh, **FSDP_KWARGS)\n";
  return text;
}

}  // namespace shardplan
