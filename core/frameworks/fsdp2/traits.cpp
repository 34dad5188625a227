// PyTorch FSDP2.
#include <algorithm>

#include "estimate/calibration.h"
#include "frameworks/fsdp2/inference.h"
#include "frameworks/fsdp2/lower.h"
#include "frameworks/fsdp2/problems.h"
#include "frameworks/usual.h"
#include "options/option.h"
#include "parallel/communicator_list.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {
namespace {

/// The mixed-precision policy casts the gathered parameters, adapters with the rest; the modules
/// then run in that type throughout.
Regime fsdp2_regime(const Plan& plan) {
  Regime regime = usual::regime(plan);
  regime.params = regime.compute = regime.adapters = plan.precision.compute;
  regime.weights_narrow = plan.framework.fsdp2.float8_all_gather != Float8Gather::none;
  return regime;
}

KeyExchange fsdp2_keys(const Plan& plan) {
  return plan.framework.fsdp2.rotation == KeyRotation::allgather ? KeyExchange::blocks_all
                                                                 : KeyExchange::blocks_passed;
}

ExpertExchange fsdp2_experts(const Plan& plan) {
  return plan.framework.fsdp2.dispatch == ExpertDispatch::allgather ? ExpertExchange::gathered
                                                                    : ExpertExchange::reordered;
}

std::int64_t fsdp2_shard_ranks(const Plan& plan) {
  return plan.framework.fsdp2.hybrid_shard_size.value_or(plan.replicas());
}

std::int64_t fsdp2_divided_over(const Plan& plan, Category) {
  return plan.shard_ranks();
}

void fsdp2_communicators(CommunicatorList& list, const Plan& plan) {
  if (plan.cluster.world() == 1) return;
  list.add("world", list.world(), GroupUse::collectives);
  list.add_divided(Group::sequence, GroupUse::all_to_all);
  // Keys and values are gathered or passed on by all-to-alls, and their gradients passed on.
  list.add_divided(Group::context);
  if (plan.parallel.context > 1) list.at(name_of(Group::context)).peers = {1, 1};
  if (plan.parallel.pipeline > 1) {
    list.add(Group::pipeline);  // the norm of gradients is summed over it
    const bool round = plan.parallel.schedule == PipelineSchedule::interleaved;
    const std::int64_t both = std::min<std::int64_t>(2, plan.parallel.pipeline - 1);
    const std::int64_t neighbours = round ? both : list.neighbours();
    list.at(name_of(Group::pipeline)).peers = {neighbours, neighbours};
  }
  if (plan.parallel.expert > 1) {
    const bool sends = fsdp2_experts(plan) == ExpertExchange::reordered;
    list.add(Group::expert, sends ? GroupUse::all_to_all : GroupUse::collectives);
    list.add_divided(Group::expert_data);
  }
  if (const auto shard = plan.framework.fsdp2.hybrid_shard_size) {
    list.add_dimension("replica", plan.copies(), list.shape(Group::replica));
    list.add_dimension("shard", *shard, list.shape(Group::shard));
  } else if (plan.parallel.tensor > 1 || plan.parallel.pipeline > 1) {
    list.add_dimension("data", list.ranks(Group::data), list.shape(Group::data));
    if (plan.parallel.tensor > 1)
      list.add_dimension("tensor", plan.parallel.tensor, list.shape(Group::tensor));
  }
}

/// A loop's runs have a tied table's sum when its embedding's temporaries are gone; those of
/// Hugging Face Trainer beside them, and why is not known.
void fsdp2_tape(const Plan& plan, const Segment&, TapeOptions& options) {
  options.autograd_products = true;
  options.takes_sums = !plan.trainer->shards_ends_apart;
}

SaveRules fsdp2_saves(const Plan& plan) {
  return usual::saves_state_dict(plan.framework.fsdp2.state_dict_type, plan);
}

}  // namespace

extern const OptionTable<Framework> kFsdp2OptionTable;
extern const FrameworkTraits kFsdp2Traits;
constinit const FrameworkTraits kFsdp2Traits{
    .kind = FrameworkKind::fsdp2,
    .name = "fsdp2",
    .label = "FSDP2",
    .spoken = "fsdp fully_shard",
    .options = &kFsdp2OptionTable,
    .options_problem = usual::no_options_problem,
    .plan_problem = fsdp2_plan_problem,
    .degrees = {.tensor = Support::yes,
                .pipeline = Support::yes,
                .virtual_pipeline = Support::yes,
                .sequence = Support::yes,
                .context = Support::yes,
                .expert = Support::yes},
    .split = SplitStyle::transformers,
    .experts = fsdp2_experts,
    .keys = fsdp2_keys,
    .data_parallel = true,
    .divides_tokens = false,
    .divides_experts = false,
    .divides_behind_towers = true,
    .balance = StageBalance::blocks_and_ends,
    .torch_pipelining = true,
    .makes_workspace_late = usual::always,
    .pipeline_problem = usual::no_pipeline_problem,
    .sharding_problem = fsdp2_division_problem,
    .build = usual::builds_as_written,
    .regime = fsdp2_regime,
    .default_precision = "bf16-autocast",
    .lora_precision = "bf16-pure",
    .takes_recipes = true,
    .compiles = CompileScope::model,
    .graph_bytes = usual::one_graph,
    .breaks_at_modules = usual::never,
    .breaks_at_blocks = [](const Plan& plan) { return plan.compiles_whole(); },
    .records_graphs = usual::never,
    .keeps_master = false,
    .casts_by_policy = true,
    .sync_each_batch = [](const Plan& plan) { return plan.framework.fsdp2.sync_each_batch; },
    .under_trainer = UnderTrainer::policy,
    .has_zero = false,
    .shard_ranks = fsdp2_shard_ranks,
    .divided_over = fsdp2_divided_over,
    .given = Given::shards,
    .shards_parameters = usual::always,
    .places_states = true,
    .shard_group = usual::shard_group,
    .hops = usual::one_hop,
    .communicators = fsdp2_communicators,
    .foreign_contexts = usual::no_foreign_contexts,
    .set_tape = fsdp2_tape,
    .tiled_mlps = TiledMlps::own_sums,
    .selective_runs_blocks = true,
    .checkpoint_problem = usual::no_checkpoint_problem,
    .saved_input = usual::saved_input,
    .held_inputs = usual::no_held_inputs,
    .inputs_on_host = usual::inputs_on_host,
    .parameters_stay = false,
    .keeps_tables = false,
    .frees_sent = false,
    .lower = lower_fsdp2,
    .distinct_ranks = usual::first_of_stages,
    .cut_otherwise = usual::no_ranks,
    .emit_inference = emit_fsdp2_inference,
    .add_frozen = add_fsdp2_frozen,
    .saves = fsdp2_saves,
    .process = &Calibration::pytorch,
    .connects_more = true,
    .generates = false,
    .quantizes_generation = false,
    .runs_rlhf = true,
    .scores_first = false,
    .has_hybrid_engine = false,
    .is_own_engine = false,
};

}  // namespace shardplan
