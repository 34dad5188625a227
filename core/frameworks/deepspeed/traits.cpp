// DeepSpeed: ZeRO, its pipeline engine, AutoTP, Ulysses, AutoEP and its own sparse layers.
#include "estimate/calibration.h"
#include "frameworks/deepspeed/communicators.h"
#include "frameworks/deepspeed/division.h"
#include "frameworks/deepspeed/engine.h"
#include "frameworks/deepspeed/inference.h"
#include "frameworks/deepspeed/lower.h"
#include "frameworks/deepspeed/option_table.h"
#include "frameworks/deepspeed/saved_inputs.h"
#include "frameworks/usual.h"
#include "model/builder.h"
#include "program/category.h"
#include "program/program.h"
#include "program/tape.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

void build_deepspeed(const Plan& plan, BuildOptions& options) {
  const auto& moe = plan.framework.deepspeed.moe;
  if (!moe) return;
  options.kernels = KernelSet::deepspeed_moe;
  options.moe = moe;
}

/// With optimizer states on the host, up to stage 2, nothing large is asked for in a step that a
/// workspace could be in the way of: both are there from the beginning.
bool deepspeed_makes_workspace_late(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  return zero.stage == 3 || zero.offload_optimizer.device == OffloadDevice::none;
}

ExpertExchange deepspeed_experts(const Plan& plan) {
  return plan.framework.deepspeed.moe ? ExpertExchange::slots : ExpertExchange::autoep;
}

/// zero.Init divides a model as it is loaded, but a quantized one, which is loaded whole.
bool found_divided(const Plan& plan) {
  const std::optional<Lora>& lora = plan.workload.lora;
  const bool quantized = lora && lora->base != Quantization::none;
  return plan.framework.deepspeed.zero.stage == 3 && plan.trainer->loads_divided && !quantized;
}

/// The engine casts adapters with the rest, unless it finds the model divided; stage 3 has a linear
/// of its own.
Regime deepspeed_regime(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  Regime regime = usual::regime(plan);
  if (const DType type = parameter_type(plan); type != plan.precision.params)
    regime.params = regime.compute = type;
  if (!found_divided(plan)) regime.adapters = regime.params;
  regime.zero3_linear = zero.stage == 3 && zero.memory_efficient_linear;
  return regime;
}

std::int64_t deepspeed_shard_ranks(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  return zero.mics() ? zero.mics_shard_size : plan.replicas();
}

std::int64_t deepspeed_divided_over(const Plan& plan, Category category) {
  const bool states =
      category == Category::optimizer_states || category == Category::master_parameters;
  const int first = states ? 1 : category == Category::gradients ? 2 : 3;
  return plan.framework.deepspeed.zero.stage >= first ? plan.shard_ranks() : 1;
}

bool deepspeed_shards_parameters(const Plan& plan) {
  return plan.framework.deepspeed.zero.stage == 3;
}

/// engine.save_checkpoint: one rank writes the module's tensors (mp_rank_00_model_states.pt), at
/// stage 3 nobody, since its fp32 partitions say the same; each rank writes its partition of the
/// flat fp32 weights and of the states (*_optim_states.pt).
SaveRules deepspeed_saves(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const bool apart = plan.trainer->saves_weights_apart;
  return {.weights = zero.stage < 3 ? SavedBy::one_rank : SavedBy::nobody,
          .states = zero.stage > 0 ? SavedBy::each_rank : SavedBy::one_rank,
          .masters = zero.stage > 0 || plan.precision.master,
          .frozen = !apart,
          .weights_apart = apart && (zero.stage < 3 || zero.gather_16bit_weights_on_model_save),
          .files = "model_states.pt and a file of optimizer states by each rank"};
}

}  // namespace

extern const FrameworkTraits kDeepSpeedTraits;
constinit const FrameworkTraits kDeepSpeedTraits{
    .kind = FrameworkKind::deepspeed,
    .name = "deepspeed",
    .label = "DeepSpeed",
    .spoken = "ds zero",
    .options = &kDeepSpeedOptionTable,
    .options_problem = usual::no_options_problem,
    .plan_problem = usual::no_plan_problem,
    .degrees = {.tensor = Support::yes,
                .pipeline = Support::yes,
                .virtual_pipeline = Support::never,
                .sequence = Support::yes,
                .context = Support::never,
                .expert = Support::yes},
    .split = SplitStyle::autotp,
    .experts = deepspeed_experts,
    .keys = usual::passes_keys_round,
    .data_parallel = true,
    .divides_tokens = false,
    .divides_experts = false,
    .balance = StageBalance::parameters,
    .makes_workspace_late = deepspeed_makes_workspace_late,
    .pipeline_problem = deepspeed_pipeline_problem,
    .sharding_problem = deepspeed_sharding_problem,
    .build = build_deepspeed,
    .regime = deepspeed_regime,
    .default_precision = "bf16-master",
    .lora_precision = "bf16-master",
    .takes_recipes = false,
    .compiles = CompileScope::model,
    .graph_bytes = usual::one_graph,
    .breaks_at_modules = deepspeed_shards_parameters,
    .breaks_at_blocks = usual::never,
    .records_graphs = usual::never,
    .keeps_master = true,
    .casts_by_policy = false,
    .sync_each_batch = usual::no_choice_of_sync,
    .under_trainer = UnderTrainer::precision,
    .has_zero = true,
    .shard_ranks = deepspeed_shard_ranks,
    .divided_over = deepspeed_divided_over,
    .given = Given::flat,
    .shards_parameters = deepspeed_shards_parameters,
    .shard_group = deepspeed_shard_group,
    .hops = deepspeed_hops,
    .communicators = deepspeed_communicators,
    .foreign_contexts = deepspeed_foreign_contexts,
    .set_tape = usual::autograd_tape,
    .tiled_mlps = TiledMlps::last_part,
    .selective_runs_blocks = true,
    .checkpoint_problem = deepspeed_checkpoint_problem,
    .saved_input = deepspeed_saved_input,
    .held_inputs = deepspeed_held_inputs,
    .inputs_on_host = deepspeed_inputs_on_host,
    .parameters_stay = false,
    .keeps_tables = false,
    .frees_sent = false,
    .lower = lower_deepspeed,
    .distinct_ranks = deepspeed_distinct_ranks,
    .cut_otherwise = usual::no_ranks,
    .emit_inference = emit_deepspeed_inference,
    .add_frozen = add_deepspeed_frozen,
    .saves = deepspeed_saves,
    .process = &Calibration::pytorch,
    .connects_more = true,
    .generates = true,
    .quantizes_generation = false,
    .runs_rlhf = true,
    .scores_first = false,
    .has_hybrid_engine = true,
    .is_own_engine = false,
};

}  // namespace shardplan
