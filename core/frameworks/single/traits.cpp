// One process of plain PyTorch on each GPU, or tensor-parallel ones of transformers.
#include "estimate/calibration.h"
#include "frameworks/ddp/data_parallel.h"
#include "frameworks/usual.h"
#include "lowering/inference/kept_weights.h"
#include "options/option.h"
#include "parallel/communicator_list.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {
namespace {

Program lower_single(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t) {
  return lower_data_parallel(model, plan, run, nullptr);
}

}  // namespace

extern const OptionTable<Framework> kSingleOptionTable;
constinit const OptionTable<Framework> kSingleOptionTable{"framework", "", {}};  // has none

extern const FrameworkTraits kSingleTraits;
constinit const FrameworkTraits kSingleTraits{
    .kind = FrameworkKind::single,
    .name = "single",
    .label = "plain PyTorch",
    .spoken = "pytorch torch plain",
    .options = &kSingleOptionTable,
    .options_problem = usual::no_options_problem,
    .plan_problem = usual::no_plan_problem,
    .degrees = {.tensor = Support::yes,
                .pipeline = Support::never,
                .virtual_pipeline = Support::never,
                .sequence = Support::never,
                .context = Support::never,
                .expert = Support::yes},
    .split = SplitStyle::transformers,
    .experts = usual::has_all_tokens,
    .keys = usual::passes_keys_round,
    .data_parallel = false,
    .divides_tokens = false,
    .divides_experts = false,
    .balance = StageBalance::blocks,
    .makes_workspace_late = usual::always,
    .pipeline_problem = usual::no_pipeline_problem,
    .sharding_problem = usual::no_sharding_problem,
    .build = usual::builds_as_written,
    .regime = usual::regime,
    .default_precision = "bf16-autocast",
    .lora_precision = "bf16-pure",
    .takes_recipes = true,
    .compiles = CompileScope::model,
    .graph_bytes = usual::one_graph,
    .breaks_at_modules = usual::never,
    .breaks_at_blocks = usual::never,
    .records_graphs = usual::always,
    .keeps_master = false,
    .casts_by_policy = false,
    .sync_each_batch = usual::no_choice_of_sync,
    .under_trainer = UnderTrainer::autocast,
    .has_zero = false,
    .shard_ranks = usual::all_replicas,
    .divided_over = usual::undivided,
    .given = Given::tensors,
    .shards_parameters = usual::never,
    .places_states = true,
    .shard_group = usual::shard_group,
    .hops = usual::one_hop,
    .communicators = usual::mesh_communicators,
    .foreign_contexts = usual::no_foreign_contexts,
    .set_tape = usual::autograd_tape_with_sums,
    .tiled_mlps = TiledMlps::plain,
    .selective_runs_blocks = true,
    .checkpoint_problem = usual::no_checkpoint_problem,
    .saved_input = usual::saved_input,
    .held_inputs = usual::no_held_inputs,
    .inputs_on_host = usual::inputs_on_host,
    .parameters_stay = true,
    .keeps_tables = false,
    .frees_sent = false,
    .lower = lower_single,
    .distinct_ranks = usual::first_of_stages,
    .cut_otherwise = usual::no_ranks,
    .emit_inference = emit_whole_pass,
    .add_frozen = add_whole_weights,
    .saves = usual::saves_whole,
    .process = &Calibration::pytorch,
    .connects_more = true,
    .generates = true,
    .quantizes_generation = true,
    .runs_rlhf = true,
    .scores_first = false,
    .has_hybrid_engine = false,
    .is_own_engine = false,
};

}  // namespace shardplan
