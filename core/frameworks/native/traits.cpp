// Our own engine (validator/).
#include <algorithm>

#include "estimate/calibration.h"
#include "frameworks/native/lower.h"
#include "frameworks/native/problems.h"
#include "frameworks/usual.h"
#include "lowering/inference/kept_weights.h"
#include "options/option.h"
#include "parallel/communicator_list.h"
#include "program/category.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {
namespace {

/// As ZeRO's stages: optimizer states and masters from 1 on, gradients from 2, parameters at 3.
std::int64_t native_divided_over(const Plan& plan, Category category) {
  const bool states =
      category == Category::optimizer_states || category == Category::master_parameters;
  const std::int64_t first = states ? 1 : category == Category::gradients ? 2 : 3;
  return plan.framework.native.zero_stage >= first ? plan.replicas() : 1;
}

void build_native(const Plan&, BuildOptions& options) {
  options.adapts_linears_alone = true;
}

void native_communicators(CommunicatorList& list, const Plan& plan) {
  if (plan.cluster.world() == 1) return;
  list.add("world", list.world(), GroupUse::collectives);
  // A group that is the world is the world's communicator.
  for (const Group group : {Group::tensor, Group::data, Group::pipeline})
    if (list.ranks(group) < plan.cluster.world()) list.add_divided(group);
  if (const std::int64_t experts = plan.parallel.expert; experts > 1) {
    const bool all = experts == plan.cluster.world();
    if (!all)
      for (const Group group : {Group::expert, Group::expert_data}) list.add_divided(group);
    list.at(all ? "world" : name_of(Group::expert)).peers = {experts - 1, experts - 1};
  }
  // Those that share sequences are the data group, where that is all of it.
  if (const std::int64_t ranks = list.ranks(Group::context); ranks > 1) {
    const bool own = ranks < list.ranks(Group::data);
    if (own) list.add_divided(Group::context);
    const bool all = ranks == plan.cluster.world();
    const std::int64_t neighbours = ranks == 2 ? 1 : 2;
    Communicator& over = list.at(all ? "world" : name_of(own ? Group::context : Group::data));
    // The world's may reach all for the sake of experts.
    over.peers = {std::max(over.peers.sends, neighbours),
                  std::max(over.peers.receives, neighbours)};
  }
  if (plan.parallel.pipeline == 1) return;
  const bool all = plan.parallel.pipeline == plan.cluster.world();
  const std::int64_t neighbours = plan.parallel.pipeline == 2 ? 1 : 2;  // in a ring
  list.at(all ? "world" : name_of(Group::pipeline)).peers = {neighbours, neighbours};
  // The ends of more than two stages sum a tied table's gradients in pairs of their own, which all
  // ranks open. A plan does not say whether the table is tied: without it this is too much. Beside
  // adapters it has no gradient.
  const bool at_end = list.first_stage() || list.last_stage();
  if (plan.parallel.pipeline > 2 && !plan.workload.lora)
    list.add("ends", {2, std::min<std::int64_t>(2, plan.cluster.nodes)},
             at_end ? GroupUse::collectives : GroupUse::none);
}

/// Its checkpoints (docs/explanation/validation.md) have no price yet.
SaveRules saves_nothing(const Plan&) {
  return {.weights = SavedBy::nobody, .states = SavedBy::nobody};
}

/// No tape of PyTorch's: its lowering sends what blocks keep, and counts it.
SavedInput keeps_inputs(const Plan&) {
  return {};
}
HostMemory counted_by_the_lowering(const Plan&, const ModelRun&) {
  return {};
}

}  // namespace

extern const OptionTable<Framework> kNativeOptionTable;
extern const FrameworkTraits kNativeTraits;
constinit const FrameworkTraits kNativeTraits{
    .kind = FrameworkKind::native,
    .name = "native",
    .label = "shardplan-validate's engine",
    .options = &kNativeOptionTable,
    .options_problem = native_options_problem,
    .plan_problem = native_plan_problem,
    .degrees = {.tensor = Support::yes,
                .pipeline = Support::yes,
                .virtual_pipeline = Support::yes,
                .sequence = Support::never,
                .context = Support::yes,
                .expert = Support::yes},
    .split = SplitStyle::megatron,
    .experts = usual::dispatches_tokens,
    .keys = usual::passes_keys_round,
    .data_parallel = true,
    .divides_tokens = true,
    .divides_experts = false,
    .balance = StageBalance::blocks,
    .makes_workspace_late = usual::never,
    .pipeline_problem = native_pipeline_problem,
    .sharding_problem = native_sharding_problem,
    .build = build_native,
    .quantizes_experts = true,
    .regime = usual::regime,
    .default_precision = "bf16-master",
    .lora_precision = "bf16-master",
    .takes_recipes = true,
    .compiles = std::nullopt,
    .graph_bytes = usual::one_graph,
    .breaks_at_modules = usual::never,
    .breaks_at_blocks = usual::never,
    .records_graphs = usual::never,
    .keeps_master = false,
    .casts_by_policy = false,
    .sync_each_batch = usual::no_choice_of_sync,
    .under_trainer = UnderTrainer::never,
    .has_zero = false,
    .shard_ranks = usual::all_replicas,
    .divided_over = native_divided_over,
    .given = Given::flat,
    .shards_parameters = usual::never,
    .shard_group = usual::shard_group,
    .hops = usual::one_hop,
    .communicators = native_communicators,
    .foreign_contexts = usual::no_foreign_contexts,
    .set_tape = usual::plain_tape,
    .tiled_mlps = TiledMlps::unknown,
    .selective_runs_blocks = true,
    .checkpoint_problem = native_checkpoint_problem,
    .saved_input = keeps_inputs,
    .held_inputs = usual::no_held_inputs,
    .inputs_on_host = counted_by_the_lowering,
    .parameters_stay = false,
    .keeps_tables = false,
    .frees_sent = false,
    .lower = lower_native,
    .distinct_ranks = usual::first_of_stages,
    .cut_otherwise = usual::no_ranks,
    .emit_inference = emit_whole_pass,
    .add_frozen = add_whole_weights,
    .saves = saves_nothing,
    .process = &Calibration::native,
    .connects_more = false,
    .generates = false,
    .quantizes_generation = false,
    .runs_rlhf = false,
    .scores_first = false,
    .has_hybrid_engine = false,
    .is_own_engine = true,
};

}  // namespace shardplan
