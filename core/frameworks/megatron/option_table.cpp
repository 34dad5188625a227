// What jobs can say of Megatron-LM, under the names of its arguments.
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kLayers{named("transformer_engine", true), named("local", false)};

/// Megatron-LM's recipes gather beside the forward pass wherever they can.
OptionValue gathers_beside(const Framework& f) {
  return f.megatron.distributed_optimizer && f.megatron.overlap_grad_reduce;
}

bool sends_modules(const Framework& f) {
  return !f.megatron.offload_modules.empty();
}

template <auto Member>
constexpr Option<Framework> of_megatron(OptionInfo info, OptionRules<Framework> rules = {}) {
  return option<&Framework::megatron, Member>(info, rules);
}

constexpr std::array kMegatronOptions{
    of_megatron<&MegatronOptions::distributed_optimizer>(
        {.key = "distributed_optimizer",
         .flag = "--distributed-optimizer",
         .help = "divide master weights and states over data-parallel GPUs"}),
    of_megatron<&MegatronOptions::distributed_optimizer_instances>(
        {.key = "distributed_optimizer_instances",
         .flag = "--distributed-optimizer-instances",
         .help = "groups of data-parallel GPUs that each divide master weights and states",
         .default_text = "1",
         .integers = {.least = 1}}),
    of_megatron<&MegatronOptions::shard_gradients>(
        {.key = "shard_gradients",
         .flag = "--shard-gradients",
         .help = "divide gradients too, reducing them after every micro-batch"}),
    of_megatron<&MegatronOptions::shard_parameters>(
        {.key = "shard_parameters",
         .flag = "--shard-parameters",
         .help = "divide parameters too, gathering a layer's for every pass",
         .doc = "divide parameters too, gathering a layer's for every pass (Megatron-FSDP, "
                "`optim_grads_params`; modelled); needs `shard_gradients`"}),
    of_megatron<&MegatronOptions::overlap_grad_reduce>(
        {.key = "overlap_grad_reduce",
         .flag = "--overlap-grad-reduce",
         .help = "reduce gradients beside the backward pass"}),
    of_megatron<&MegatronOptions::overlap_param_gather>(
        {.key = "overlap_param_gather",
         .flag = "--overlap-param-gather",
         .help = "gather parameters beside the next forward pass",
         .default_text = "true where `distributed_optimizer` and `overlap_grad_reduce` are"},
        {.open = gathers_beside}),
    of_megatron<&MegatronOptions::gradients>({.key = "grad_reduce_dtype",
                                              .flag = "--grad-reduce-dtype",
                                              .help = "type of the gradient buffers",
                                              .choices = kStateTypes}),
    of_megatron<&MegatronOptions::bucket_size>(
        {.key = "bucket_size",
         .flag = "--bucket-size",
         .help = "size of a bucket of gradients",
         .unit = "elements",
         .default_text = "40 M, or 1 M for each data-parallel GPU if that is more",
         .integers = {.least = 1}}),
    of_megatron<&MegatronOptions::pad_buckets>({.key = "pad_buckets",
                                                .flag = "--pad-buckets",
                                                .help = "buckets as multiples of 65,536 elements"}),
    of_megatron<&MegatronOptions::cross_entropy_fusion>(
        {.key = "cross_entropy_fusion",
         .flag = "--cross-entropy-fusion",
         .help = "loss in place of the logits (Transformer Engine)"}),
    of_megatron<&MegatronOptions::gradient_accumulation_fusion>(
        {.key = "gradient_accumulation_fusion",
         .flag = "--gradient-accumulation-fusion",
         .help = "products add their gradients to the buffers"}),
    of_megatron<&MegatronOptions::async_tensor_model_parallel_allreduce>(
        {.key = "async_tensor_model_parallel_allreduce",
         .flag = "--async-tensor-model-parallel-allreduce",
         .help = "exchange input gradients beside the products of weight gradients",
         .changes_passes = true}),
    of_megatron<&MegatronOptions::transformer_engine>(
        {.key = "transformer_impl",
         .flag = "--transformer-impl",
         .help = "layers of Transformer Engine, or Megatron-LM's own",
         .choices = kLayers,
         .changes_passes = true}),
    of_megatron<&MegatronOptions::tp_comm_overlap>(
        {.key = "tp_comm_overlap",
         .flag = "--tp-comm-overlap",
         .help = "tensor-parallel exchanges in chunks beside their products",
         .doc = "tensor-parallel exchanges in chunks beside their products; needs "
                "`sequence_parallel` and Transformer Engine "
                "([pipeline.md](../explanation/pipeline.md#what-hides-exchanges))",
         .changes_passes = true}),
    of_megatron<&MegatronOptions::mtp_num_layers>(
        {.key = "mtp_num_layers",
         .flag = "--mtp-num-layers",
         .help = "layers that predict further tokens",
         .doc = "layers behind the others that predict further tokens, each with logits and a loss "
                "of its own (modelled)",
         .integers = {.least = 0, .most = 8},
         .changes_passes = true}),
    of_megatron<&MegatronOptions::distribute_saved_activations>(
        {.key = "distribute_saved_activations",
         .flag = "--distribute-saved-activations",
         .help = "recomputed layers' inputs divided over tensor-parallel GPUs",
         .doc = "recomputed layers' inputs divided over tensor-parallel GPUs: with full "
                "checkpointing and without `sequence_parallel` "
                "([parallelism.md](../explanation/parallelism.md#saved-inputs-in-parts))"}),
    Option<Framework>{
        {.key = "offload_modules",
         .help = "modules whose saved tensors wait on the host",
         .doc = "modules whose saved tensors wait on the host (`--fine-grained-activation-"
                "offloading`; modelled, [what is sent]"
                "(../explanation/memory.md#modules-that-wait-on-the-host))",
         .default_text = "`[]`",
         .elements = "names of modules",
         .kind = OptionKind::texts,
         .choices = kSentModules},
        member<&Framework::megatron, &MegatronOptions::offload_modules>(),
        {.written = sends_modules}},
    of_megatron<&MegatronOptions::min_offloaded_tensor_size>(
        {.key = "min_offloaded_tensor_size",
         .flag = "--min-offloaded-tensor-size",
         .help = "smaller tensors of offload_modules stay on the GPU",
         .unit = "elements",
         .integers = {.least = 0},
         .changes_passes = true}),
};

}  // namespace

extern const OptionTable<Framework> kMegatronOptionTable;
constinit const OptionTable<Framework> kMegatronOptionTable{"framework", "Megatron",
                                                            kMegatronOptions};

}  // namespace shardplan
