// Megatron-LM.
#include "estimate/calibration.h"
#include "frameworks/megatron/communicators.h"
#include "frameworks/megatron/frozen.h"
#include "frameworks/megatron/lower.h"
#include "frameworks/megatron/problems.h"
#include "frameworks/megatron/saved_inputs.h"
#include "frameworks/megatron/sent_modules.h"
#include "frameworks/megatron/transformer_engine.h"
#include "frameworks/usual.h"
#include "lowering/inference/kept_weights.h"
#include "model/builder.h"
#include "options/option.h"
#include "program/category.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {
namespace {

void build_megatron(const Plan& plan, BuildOptions& options) {
  options.kernels = KernelSet::megatron;
  options.joins_adapters = true;
  if (plan.workload.kind == WorkKind::train)
    options.further_tokens = plan.framework.megatron.mtp_num_layers;
  if (plan.framework.megatron.cross_entropy_fusion) options.loss = LossKind::fused_linear;
  if (plan.checkpointing != Checkpointing::selective) return;
  // Run again, unfused attention keeps as little as the fused one: queries, keys and values.
  options.attention = AttentionKind::sdpa;
  options.attention_again = true;
}

std::int64_t megatron_divided_over(const Plan& plan, Category category) {
  const MegatronOptions& options = plan.framework.megatron;
  const bool states =
      category == Category::optimizer_states || category == Category::master_parameters;
  const bool divided = states || (category == Category::gradients && options.shard_gradients) ||
                       (category == Category::parameters && options.shard_parameters);
  const std::int64_t ranks = plan.replicas() / options.distributed_optimizer_instances;
  return divided && options.distributed_optimizer ? ranks : 1;
}

/// Of the ranks that divide a stage's buckets the second, the middle and the last one.
std::vector<std::int64_t> other_parts(const Plan& plan, std::int64_t rank) {
  std::vector<std::int64_t> ranks;
  const std::int64_t owners = megatron_divided_over(plan, Category::master_parameters);
  const std::int64_t stage = plan.cluster.world() / plan.parallel.pipeline;
  const std::int64_t apart = stage / plan.replicas();  // of neighbours among the owners
  for (const std::int64_t place : {std::int64_t{1}, owners / 2, owners - 1})
    if (place > 0 && place < owners && (ranks.empty() || ranks.back() < rank + place * apart))
      ranks.push_back(rank + place * apart);
  return ranks;
}

/// What Megatron-LM starts and hides; userbuffers exchange what the linears of blocks read and
/// make, and Transformer Engine cuts a product whose result is scattered into four (module/base.py,
/// initialize_ub).
void set_megatron_tape(const Plan& plan, const Segment& segment, TapeOptions& options) {
  const MegatronOptions& megatron = plan.framework.megatron;
  if (segment.whole) return;
  if (segment.checkpointable) options.sent = sent_modules(plan);
  options.module_calls = megatron.transformer_engine;
  options.casts_once = true;
  options.hides_gradient_exchange = megatron.async_tensor_model_parallel_allreduce;
  if (!cuts_exchanges(plan) || !segment.checkpointable) return;
  constexpr std::int64_t kSplits = 4;
  options.gather_chunks = plan.parallel.tensor;
  options.scatter_chunks = kSplits;
}

/// Float16Module casts the whole module, adapters with the rest.
Regime megatron_regime(const Plan& plan) {
  Regime regime = usual::regime(plan);
  regime.adapters = plan.precision.params;
  return regime;
}

/// --ckpt-format torch_dist with --ckpt-fully-parallel-save, its defaults: each rank writes a part
/// of what the data-parallel ranks have alike (megatron/core/dist_checkpointing).
SaveRules megatron_saves(const Plan&) {
  return {.weights = SavedBy::each_rank,
          .states = SavedBy::each_rank,
          .masters = true,
          .files = "a folder of shards (torch_dist)"};
}

}  // namespace

extern const OptionTable<Framework> kMegatronOptionTable;
extern const FrameworkTraits kMegatronTraits;
constinit const FrameworkTraits kMegatronTraits{
    .kind = FrameworkKind::megatron,
    .name = "megatron",
    .label = "Megatron-LM",
    .spoken = "megatron_lm megatron_core mcore",
    .options = &kMegatronOptionTable,
    .options_problem = megatron_options_problem,
    .plan_problem = megatron_plan_problem,
    .degrees = {.tensor = Support::yes,
                .pipeline = Support::yes,
                .virtual_pipeline = Support::yes,
                .sequence = Support::yes,
                .context = Support::yes,
                .expert = Support::yes},
    .split = SplitStyle::megatron,
    .experts = usual::dispatches_tokens,
    .keys = usual::passes_keys_round,
    .data_parallel = true,
    .divides_tokens = true,
    .divides_experts = true,
    .balance = StageBalance::blocks,
    .runs_towers_whole = true,
    .makes_workspace_late = usual::never,
    .pipeline_problem = usual::no_pipeline_problem,
    .sharding_problem = megatron_sharding_problem,
    .build = build_megatron,
    .regime = megatron_regime,
    .default_precision = "bf16-master",
    .lora_precision = "bf16-master",
    .takes_recipes = true,
    .compiles = std::nullopt,
    .graph_bytes = usual::one_graph,
    .breaks_at_modules = usual::never,
    .breaks_at_blocks = usual::never,
    .records_graphs = usual::never,
    .keeps_master = true,
    .casts_by_policy = false,
    .sync_each_batch = usual::no_choice_of_sync,
    .under_trainer = UnderTrainer::never,
    .has_zero = false,
    .shard_ranks = usual::all_replicas,
    .divided_over = megatron_divided_over,
    .given = Given::flat,
    .shards_parameters = usual::never,
    .places_states = true,
    .shard_group = usual::shard_group,
    .hops = usual::one_hop,
    .communicators = megatron_communicators,
    .foreign_contexts = usual::no_foreign_contexts,
    .set_tape = set_megatron_tape,
    .tiled_mlps = TiledMlps::unknown,
    .selective_runs_blocks = false,
    .checkpoint_problem = megatron_checkpoint_problem,
    .saved_input = megatron_saved_input,
    .held_inputs = usual::no_held_inputs,
    .inputs_on_host = sent_on_host,
    .parameters_stay = false,
    .keeps_tables = true,
    .frees_sent = true,
    .lower = lower_megatron,
    .distinct_ranks = usual::first_of_stages,
    .cut_otherwise = other_parts,
    .emit_inference = emit_megatron_pass,
    .add_frozen = add_megatron_frozen,
    .saves = megatron_saves,
    .process = &Calibration::pytorch,
    .connects_more = true,
    .generates = false,
    .quantizes_generation = false,
    .runs_rlhf = true,
    .scores_first = true,
    .has_hybrid_engine = false,
    .is_own_engine = false,
};

}  // namespace shardplan
