// PyTorch's DistributedDataParallel.
#include "estimate/calibration.h"
#include "frameworks/ddp/data_parallel.h"
#include "frameworks/usual.h"
#include "lowering/inference/kept_weights.h"
#include "model/builder.h"
#include "options/option.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {
namespace {

Program lower_ddp(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t) {
  return lower_data_parallel(model, plan, run, &plan.framework.ddp);
}

/// ZeroRedundancyOptimizer gives each rank whole tensors.
std::int64_t ddp_divided_over(const Plan& plan, Category category) {
  const bool states = category == Category::optimizer_states;
  return states && plan.framework.ddp.zero_redundancy_optimizer ? plan.replicas() : 1;
}

/// What the model returns is copied where DDP looks for unused parameters
/// (torch/nn/parallel/distributed.py, _post_forward and _DDPSink).
void build_ddp(const Plan& plan, BuildOptions& options) {
  options.clones_outputs = finds_unused_parameters(plan);
}

std::int64_t ddp_graph_bytes(const Plan& plan) {
  return plan.framework.ddp.bucket_cap_bytes;
}

/// Views into buckets are no tensors of the graphs' pool.
bool ddp_records_graphs(const Plan& plan) {
  return !plan.framework.ddp.gradient_as_bucket_view;
}

}  // namespace

extern const OptionTable<Framework> kDdpOptionTable;
extern const FrameworkTraits kDdpTraits;
constinit const FrameworkTraits kDdpTraits{
    .kind = FrameworkKind::ddp,
    .name = "ddp",
    .label = "DDP",
    .spoken = "distributed_data_parallel",
    .options = &kDdpOptionTable,
    .options_problem = usual::no_options_problem,
    .plan_problem = usual::no_plan_problem,
    .degrees = {.tensor = Support::never,
                .pipeline = Support::never,
                .virtual_pipeline = Support::never,
                .sequence = Support::yes,
                .context = Support::never,
                .expert = Support::never},
    .split = SplitStyle::transformers,
    .experts = usual::has_all_tokens,
    .keys = usual::passes_keys_round,
    .data_parallel = true,
    .divides_tokens = false,
    .divides_experts = false,
    .balance = StageBalance::blocks,
    .makes_workspace_late = usual::always,
    .pipeline_problem = usual::no_pipeline_problem,
    .sharding_problem = usual::no_sharding_problem,
    .build = build_ddp,
    .regime = usual::regime,
    .default_precision = "bf16-autocast",
    .lora_precision = "bf16-pure",
    .takes_recipes = true,
    .compiles = CompileScope::model,
    .graph_bytes = ddp_graph_bytes,
    .breaks_at_modules = usual::never,
    .breaks_at_blocks = usual::never,
    .records_graphs = ddp_records_graphs,
    .keeps_master = false,
    .casts_by_policy = false,
    .sync_each_batch = usual::no_choice_of_sync,
    .under_trainer = UnderTrainer::autocast,
    .has_zero = false,
    .shard_ranks = usual::all_replicas,
    .divided_over = ddp_divided_over,
    .given = Given::tensors,
    .shards_parameters = usual::never,
    .places_states = true,
    .shard_group = usual::shard_group,
    .hops = usual::one_hop,
    .communicators = usual::mesh_communicators,
    .foreign_contexts = usual::no_foreign_contexts,
    .set_tape = usual::autograd_tape_with_sums,
    .tiled_mlps = TiledMlps::stops,
    .selective_runs_blocks = true,
    .checkpoint_problem = usual::no_checkpoint_problem,
    .saved_input = usual::saved_input,
    .held_inputs = usual::no_held_inputs,
    .inputs_on_host = usual::inputs_on_host,
    .parameters_stay = true,
    .keeps_tables = false,
    .frees_sent = false,
    .lower = lower_ddp,
    .distinct_ranks = usual::first_of_stages,
    .cut_otherwise = usual::no_ranks,
    .emit_inference = emit_whole_pass,
    .add_frozen = add_whole_weights,
    .saves = usual::saves_whole,
    .process = &Calibration::pytorch,
    // One group, reduced and broadcast: of 13 runs that margins were fitted to none had more.
    .connects_more = false,
    .generates = false,
    .quantizes_generation = false,
    .runs_rlhf = true,
    .scores_first = false,
    .has_hybrid_engine = false,
    .is_own_engine = false,
};

}  // namespace shardplan
