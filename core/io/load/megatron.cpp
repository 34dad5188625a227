#include "load/megatron.h"

#include <fmt/format.h>

#include "frameworks/megatron/saved_inputs.h"
#include "optimizers/description.h"

namespace shardplan {
namespace {

/// megatron/training/arguments.py validate_args, transformer_config.py __post_init__.
void check_saved_activations(const ObjectReader& job, const Plan& plan) {
  if (!plan.framework.megatron.distribute_saved_activations || distributes_saved_activations(plan))
    return;
  const auto fail = [&](std::string found, std::string expected) {
    job.fail("framework.distribute_saved_activations", std::move(found), std::move(expected));
  };
  if (plan.checkpointing != Checkpointing::full)
    fail(fmt::format("true, with checkpointing '{}': only inputs of layers that are recomputed "
                     "whole are saved in parts",
                     name_of(plan.checkpointing)),
         "checkpointing full, or false");
  if (plan.parallel.tensor == 1)
    fail("true, and no tensor-parallel GPUs to divide saved inputs over",
         "a tensor degree above 1, or false");
  fail("true, with parallel.sequence_parallel, which divides saved inputs already",
       "false, or parallel.sequence_parallel false");
}

}  // namespace

void check_megatron_options(const ObjectReader& framework, const MegatronOptions& m) {
  if (m.overlap_param_gather && !(m.distributed_optimizer && m.overlap_grad_reduce))
    framework.fail("overlap_param_gather",
                   "true, without both distributed_optimizer and overlap_grad_reduce", "false");
  if (m.shard_gradients && !m.distributed_optimizer)
    framework.fail("shard_gradients", "true, without distributed_optimizer", "false");
  if (m.tp_comm_overlap && !m.transformer_engine)
    framework.fail("tp_comm_overlap",
                   "true, with transformer_impl 'local': it is Transformer Engine's", "false");
}

void check_megatron(const ObjectReader& job, const Plan& plan) {
  const auto cannot = [](std::string_view what) {
    return fmt::format("Megatron-LM has no {}", what);
  };
  const Precision& p = plan.precision;
  if (p.autocast())
    job.fail("precision", cannot(fmt::format("autocast ({})", p.name)),
             "bf16-master, fp16-master or fp32");
  if (p.params != DType::f32 && !p.master)
    job.fail("precision", cannot("16-bit parameters without master weights"), "bf16-master");
  const bool cuts = plan.framework.megatron.tp_comm_overlap && plan.parallel.tensor > 1;
  if (cuts && !plan.parallel.sequence_parallel)
    job.fail("framework.tp_comm_overlap", "true, without parallel.sequence_parallel", "false");
  if (plan.optimizer.kind->megatron.empty())
    job.fail("optimizer", "Megatron-LM's optimizers are Adam and SGD here", "adamw or sgd");
  if (plan.workload.lora)
    job.fail("workload.method", "LoRA under Megatron-LM cannot be estimated yet", "full");
  check_saved_activations(job, plan);
}

}  // namespace shardplan
