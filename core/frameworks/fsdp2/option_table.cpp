// What jobs can say of PyTorch's fully_shard.
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kUnits{
    named("blocks", Fsdp2Wrap::blocks, "each block, and the rest"),
    named("whole", Fsdp2Wrap::whole, "the whole network, gathered at once"),
};

constexpr std::array kFrozenTowers{
    named("blocks", FrozenTower::blocks, "each of its layers"),
    named("root", FrozenTower::root, "with the embeddings, gathered for the whole step"),
};

constexpr std::array kRotations{
    named("allgather", KeyRotation::allgather, "all at once"),
    named("alltoall", KeyRotation::alltoall, "from rank to rank"),
};

constexpr std::array kDispatches{
    named("alltoall", ExpertDispatch::alltoall, "each to the GPU that has its expert"),
    named("allgather", ExpertDispatch::allgather, "all to every GPU, sums back"),
};

constexpr std::array kFloat8Gathers{
    named("none", Float8Gather::none, "in the compute type"),
    named("dynamic", Float8Gather::dynamic, "scales found for each gather"),
    named("precomputed", Float8Gather::precomputed, "scales found once a step"),
};

constexpr std::array kFsdp2Options{
    option<&Framework::fsdp2, &Fsdp2Options::units>(
        {.key = "units",
         .flag = "--units",
         .help = "what is gathered and reduced at once",
         .doc = "what is gathered and reduced at once; the whole network without a wrapping policy "
                "of accelerate",
         .choices = kUnits}),
    option<&Framework::fsdp2, &Fsdp2Options::frozen_tower>(
        {.key = "frozen_tower",
         .flag = "--frozen-tower",
         .help = "what a tower of images that does not train is gathered with",
         .doc = "what a tower of images that does not train is gathered with: NeMo Automodel's "
                "`distributed.multimodal.frozen_sharding`, `per_layer` or `root`",
         .choices = kFrozenTowers}),
    option<&Framework::fsdp2, &Fsdp2Options::reshard_after_forward>(
        {.key = "reshard_after_forward",
         .flag = "--reshard-after-forward",
         .help = "free a block's parameters after its forward pass"}),
    option<&Framework::fsdp2, &Fsdp2Options::cpu_offload>(
        {.key = "cpu_offload", .flag = "--cpu-offload", .help = "shards and states on the host"}),
    option<&Framework::fsdp2, &Fsdp2Options::float8_all_gather>(
        {.key = "float8_all_gather",
         .flag = "--float8-all-gather",
         .help = "gather weights that multiply in fp8 in 8 bits",
         .doc = "gather weights that multiply in fp8 in 8 bits: torchao's "
                "`enable_fsdp_float8_all_gather`, for `precision.linear` fp8-tensorwise; "
                "`precomputed` with `precompute_float8_dynamic_scale_for_fsdp`",
         .choices = kFloat8Gathers,
         .changes_passes = true}),
    option<&Framework::fsdp2, &Fsdp2Options::hybrid_shard_size>(
        {.key = "hybrid_shard_size",
         .flag = "--hybrid-shard-size",
         .help = "GPUs that divide one copy of the states",
         .doc = "GPUs that divide one copy of the states "
                "([sharding.md](../explanation/sharding.md)); a node's "
                "GPUs are accelerate's HYBRID_SHARD",
         .default_text = "all",
         .integers = {1, 1 << 20}}),
    option<&Framework::fsdp2, &Fsdp2Options::reduce_dtype>(
        {.key = "reduce_dtype",
         .flag = "--reduce-dtype",
         .help = "type in which gradients are reduced",
         .default_text = "the compute type",
         .choices = kStateTypes}),
    option<&Framework::fsdp2, &Fsdp2Options::rotation>(
        {.key = "context_rotation",
         .flag = "--context-rotation",
         .help = "how keys and values reach the GPUs of a context degree",
         .choices = kRotations,
         .changes_passes = true}),
    option<&Framework::fsdp2, &Fsdp2Options::dispatch>(
        {.key = "expert_dispatch",
         .flag = "--expert-dispatch",
         .help = "how tokens reach the GPUs that have their experts",
         .doc = "how tokens reach the GPUs that have their experts: torchtitan's all-to-all, or "
                "all tokens on every GPU (NeMo Automodel's dispatcher `torch`; modelled)",
         .choices = kDispatches,
         .changes_passes = true}),
    option<&Framework::fsdp2, &Fsdp2Options::sync_each_batch>(
        {.key = "sync_each_batch",
         .flag = "--sync-each-batch",
         .help = "reduce gradients after each micro-batch, or keep whole ones until the last",
         .default_text = "false under `trainer` hf_trainer and trl, else true"}),
    option<&Framework::fsdp2, &Fsdp2Options::state_dict_type>(
        {.key = "state_dict_type",
         .flag = "--state-dict-type",
         .also = "--fsdp-state-dict-type",
         .help = "what a checkpoint is: shards that each rank writes, or whole tensors by one rank",
         .choices = kStateDictTypes}),
};

}  // namespace

extern const OptionTable<Framework> kFsdp2OptionTable;
constinit const OptionTable<Framework> kFsdp2OptionTable{"framework", "FSDP2", kFsdp2Options};

}  // namespace shardplan
