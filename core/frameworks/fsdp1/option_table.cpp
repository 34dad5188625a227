// What jobs can say of PyTorch's FullyShardedDataParallel.
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kStrategies{
    named("full_shard", Fsdp1Strategy::full_shard),
    named("shard_grad_op", Fsdp1Strategy::shard_grad_op),
    named("hybrid_shard", Fsdp1Strategy::hybrid_shard),
    named("no_shard", Fsdp1Strategy::no_shard),
};
constexpr std::array kPrefetches{
    named("pre", Fsdp1Prefetch::pre),
    named("post", Fsdp1Prefetch::post),
    named("none", Fsdp1Prefetch::none),
};

constexpr std::array kFsdp1Options{
    option<&Framework::fsdp1, &Fsdp1Options::sharding_strategy>({.key = "sharding_strategy",
                                                                 .flag = "--sharding-strategy",
                                                                 .help = "what GPUs divide",
                                                                 .choices = kStrategies}),
    option<&Framework::fsdp1, &Fsdp1Options::hybrid_shard_size>(
        {.key = "hybrid_shard_size",
         .flag = "--hybrid-shard-size",
         .help = "GPUs that divide one copy of the states",
         .default_text = "a node's",
         .integers = {1, 1 << 20}}),
    option<&Framework::fsdp1, &Fsdp1Options::limit_all_gathers>(
        {.key = "limit_all_gathers",
         .flag = "--limit-all-gathers",
         .help = "at most two gathers in flight"}),
    option<&Framework::fsdp1, &Fsdp1Options::use_orig_params>(
        {.key = "use_orig_params",
         .flag = "--use-orig-params",
         .help = "the optimizer has the network's own tensors"}),
    option<&Framework::fsdp1, &Fsdp1Options::backward_prefetch>(
        {.key = "backward_prefetch",
         .flag = "--backward-prefetch",
         .help = "when the next unit is gathered in the backward pass",
         .choices = kPrefetches}),
    option<&Framework::fsdp1, &Fsdp1Options::forward_prefetch>(
        {.key = "forward_prefetch",
         .flag = "--forward-prefetch",
         .help = "gather the next unit before one runs forward"}),
    option<&Framework::fsdp1, &Fsdp1Options::reduce_dtype>(
        {.key = "reduce_dtype",
         .flag = "--reduce-dtype",
         .help = "type in which gradients are reduced",
         .default_text = "the compute type",
         .choices = kStateTypes}),
    option<&Framework::fsdp1, &Fsdp1Options::keep_low_precision_grads>(
        {.key = "keep_low_precision_grads",
         .flag = "--keep-low-precision-grads",
         .help = "gradients stay in the compute type"}),
    option<&Framework::fsdp1, &Fsdp1Options::cpu_offload>(
        {.key = "cpu_offload", .flag = "--cpu-offload", .help = "shards and states on the host"}),
    option<&Framework::fsdp1, &Fsdp1Options::sync_each_batch>(
        {.key = "sync_each_batch",
         .flag = "--sync-each-batch",
         .help = "reduce gradients after each micro-batch, not under no_sync()",
         .default_text = "false under `trainer` hf_trainer and trl, else true"}),
    option<&Framework::fsdp1, &Fsdp1Options::state_dict_type>(
        {.key = "state_dict_type",
         .flag = "--state-dict-type",
         .also = "--fsdp-state-dict-type",
         .help = "what a checkpoint is: shards that each rank writes, or whole tensors by one rank",
         .choices = kStateDictTypes}),
};

}  // namespace

extern const OptionTable<Framework> kFsdp1OptionTable;
constinit const OptionTable<Framework> kFsdp1OptionTable{"framework", "FSDP1", kFsdp1Options};

}  // namespace shardplan
