// PyTorch FSDP2.
#include <fmt/format.h>

#include "estimate/calibration.h"
#include "frameworks/fsdp2/inference.h"
#include "frameworks/fsdp2/lower.h"
#include "frameworks/usual.h"
#include "options/option.h"
#include "parallel/communicator_list.h"
#include "parallel/sharding.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {
namespace {

/// Whether experts are products of rows that were sorted, which are what is exchanged.
bool sorts_rows(const Model& model) {
  const auto is_weight_of_experts = [&](ParameterId id) {
    if (id == kNone) return false;
    const Parameter& p = model.parameters[static_cast<std::size_t>(id)];
    return p.kind == ParameterKind::expert && p.shape.size() == 3;
  };
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind != OpKind::grouped_linear && is_weight_of_experts(op.weight)) return false;
  return true;
}

std::optional<DivisionProblem> fsdp2_division_problem(const Model& model, const Plan& plan) {
  if (plan.parallel.expert > 1 && !sorts_rows(model))
    return DivisionProblem{
        "parallel.expert",
        fmt::format("experts of a network of type '{}' cannot be estimated divided under fsdp2 yet",
                    model.facts.model_type),
        "1"};
  const auto size = plan.framework.fsdp2.hybrid_shard_size;
  if (!size || plan.replicas() % *size == 0) return std::nullopt;
  return DivisionProblem{
      "framework.hybrid_shard_size",
      fmt::format("{} does not divide the {} data-parallel GPUs", *size, plan.replicas()),
      fmt::format("{}", nearest_divisor(plan.replicas(), *size))};
}

/// Beside expert parallelism: what torchtitan and NeMo Automodel can do and no lowering covers.
std::optional<DivisionProblem> fsdp2_plan_problem(const Plan& plan) {
  const Fsdp2Options& options = plan.framework.fsdp2;
  if (plan.parallel.expert == 1) return std::nullopt;
  const auto problem = [](std::string key, std::string_view what, std::string expected) {
    return DivisionProblem{
        std::move(key), fmt::format("{} an expert degree with fsdp2 cannot be estimated yet", what),
        std::move(expected)};
  };
  if (plan.parallel.tensor > 1) return problem("parallel.tensor", "beside", "1");
  if (options.hybrid_shard_size)
    return problem("framework.hybrid_shard_size", "copies of the states beside", "leave it out");
  if (options.cpu_offload) return problem("framework.cpu_offload", "beside", "false");
  if (options.units == Fsdp2Wrap::whole) return problem("framework.units", "beside", "blocks");
  if (plan.workload.kind != WorkKind::train)
    return problem("parallel.expert", "a workload other than training beside", "1");
  if (plan.workload.lora && !plan.workload.lora->parameters.empty())
    return problem("workload.lora.parameters", "adapters of experts beside", "leave them out");
  return std::nullopt;
}

/// The mixed-precision policy casts the gathered parameters, adapters with the rest; the modules
/// then run in that type throughout.
Regime fsdp2_regime(const Plan& plan) {
  Regime regime = usual::regime(plan);
  regime.params = regime.compute = regime.adapters = plan.precision.compute;
  return regime;
}

KeyExchange fsdp2_keys(const Plan& plan) {
  return plan.framework.fsdp2.rotation == KeyRotation::allgather ? KeyExchange::blocks_all
                                                              : KeyExchange::blocks_passed;
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
  if (plan.parallel.expert > 1) {
    list.add(Group::expert, GroupUse::all_to_all);
    list.add_divided(Group::expert_data);
  }
  if (const auto shard = plan.framework.fsdp2.hybrid_shard_size) {
    list.add_dimension("replica", plan.copies(), list.shape(Group::replica));
    list.add_dimension("shard", *shard, list.shape(Group::shard));
  } else if (plan.parallel.tensor > 1) {
    list.add_dimension("data", list.ranks(Group::data), list.shape(Group::data));
    list.add_dimension("tensor", plan.parallel.tensor, list.shape(Group::tensor));
  }
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
    .experts = [](const Plan&) { return ExpertExchange::reordered; },
    .keys = fsdp2_keys,
    .data_parallel = true,
    .divides_tokens = false,
    .divides_experts = false,
    .balance = StageBalance::blocks_and_ends,
    .torch_pipelining = true,
    .pipeline_problem = usual::no_pipeline_problem,
    .sharding_problem = fsdp2_division_problem,
    .build = usual::builds_as_written,
    .regime = fsdp2_regime,
    .default_precision = "bf16-autocast",
    .lora_precision = "bf16-autocast",
    .takes_recipes = true,
    .compiles = CompileScope::block,
    .graph_bytes = usual::one_graph,
    .keeps_master = false,
    .sync_each_batch = [](const Plan& plan) { return plan.framework.fsdp2.sync_each_batch; },
    .under_trainer = UnderTrainer::autocast,
    .has_zero = false,
    .shard_ranks = fsdp2_shard_ranks,
    .divided_over = fsdp2_divided_over,
    .given = Given::shards,
    .shards_parameters = usual::always,
    .shard_group = usual::shard_group,
    .hops = usual::one_hop,
    .communicators = fsdp2_communicators,
    .foreign_contexts = usual::no_foreign_contexts,
    .set_tape = usual::plain_tape,
    .selective_runs_blocks = true,
    .checkpoint_problem = usual::no_checkpoint_problem,
    .saved_input = usual::saved_input,
    .held_inputs = usual::no_held_inputs,
    .inputs_on_host = usual::inputs_on_host,
    .keeps_tables = false,
    .frees_sent = false,
    .lower = lower_fsdp2,
    .distinct_ranks = usual::first_of_stages,
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
