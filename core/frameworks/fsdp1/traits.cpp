// PyTorch FSDP1.
#include <fmt/format.h>

#include <algorithm>

#include "estimate/calibration.h"
#include "frameworks/fsdp1/inference.h"
#include "frameworks/fsdp1/lower.h"
#include "frameworks/usual.h"
#include "options/option.h"
#include "parallel/communicator_list.h"
#include "parallel/sharding.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {

namespace {

bool divides(const Plan& plan) {
  return plan.framework.fsdp1.sharding_strategy != Fsdp1Strategy::no_shard;
}

bool is_hybrid(const Plan& plan) {
  return plan.framework.fsdp1.sharding_strategy == Fsdp1Strategy::hybrid_shard;
}

std::int64_t fsdp1_shard_ranks(const Plan& plan) {
  if (!is_hybrid(plan)) return plan.replicas();
  const auto& size = plan.framework.fsdp1.hybrid_shard_size;
  return size.value_or(std::min(plan.cluster.gpus_per_node, plan.replicas()));
}

std::optional<DivisionProblem> hybrid_size_problem(const Plan& plan) {
  const auto& size = plan.framework.fsdp1.hybrid_shard_size;
  if (size && !is_hybrid(plan))
    return DivisionProblem{"framework.hybrid_shard_size",
                           "given, and the sharding strategy makes no copies",
                           "sharding_strategy hybrid_shard"};
  const std::int64_t ranks = fsdp1_shard_ranks(plan);
  if (plan.replicas() % ranks == 0) return std::nullopt;
  return DivisionProblem{
      "framework.hybrid_shard_size",
      fmt::format("{} does not divide the {} data-parallel GPUs", ranks, plan.replicas()),
      fmt::format("{}", nearest_divisor(plan.replicas(), ranks))};
}

/// _validate_tensors_to_flatten: one type in a flat parameter. Packed weights are tensors of the
/// type that they are stored in (bnb_4bit_quant_storage), which has to be that of the rest; a cast
/// of it would change their bits, so that it is the computing type.
std::optional<DivisionProblem> lora_problem(const Plan& plan) {
  if (!plan.workload.lora || plan.workload.lora->base == Quantization::none) return std::nullopt;
  if (plan.prepares_kbit())
    return DivisionProblem{"workload.lora.prepare_kbit",
                           "norms and embeddings in fp32 beside packed weights of 16 bits, which "
                           "FSDP1 does not flatten into one tensor",
                           "false"};
  if (plan.precision.params == plan.precision.compute) return std::nullopt;
  return DivisionProblem{"precision",
                         "parameters in fp32 beside packed weights of 16 bits, which FSDP1 does "
                         "not flatten into one tensor",
                         "bf16-pure"};
}

std::optional<DivisionProblem> offload_problem(const Plan& plan) {
  const Fsdp1Options& options = plan.framework.fsdp1;
  if (!options.cpu_offload) return std::nullopt;
  if (!divides(plan) || plan.replicas() == 1)
    return DivisionProblem{"framework.cpu_offload",
                           "with whole states on every GPU cannot be estimated",
                           "false, or a sharding strategy over several GPUs"};
  // prepare_gradient_for_backward: the sum on the host is overwritten.
  if (plan.syncs_each_batch() && plan.workload.gradient_accumulation > 1)
    return DivisionProblem{"framework.sync_each_batch",
                           "true, and with cpu_offload each reduction overwrites the gradients of "
                           "the micro-batches before it",
                           "false, or gradient_accumulation 1"};
  return std::nullopt;
}

std::optional<DivisionProblem> fsdp1_problem(const Model&, const Plan& plan) {
  if (auto problem = hybrid_size_problem(plan)) return problem;
  if (auto problem = lora_problem(plan)) return problem;
  return offload_problem(plan);
}

/// Mixed precision casts the flat parameter, adapters with the rest; the modules then run in that
/// type throughout.
Regime fsdp1_regime(const Plan& plan) {
  Regime regime = usual::regime(plan);
  regime.params = regime.adapters = plan.precision.compute;
  return regime;
}

std::int64_t fsdp1_divided_over(const Plan& plan, Category) {
  return divides(plan) ? plan.shard_ranks() : 1;
}

bool fsdp1_shards_parameters(const Plan& plan) {
  return divides(plan);
}

/// _init_process_group_state: a mesh of copies and shards, beside the world's group.
void fsdp1_communicators(CommunicatorList& list, const Plan& plan) {
  if (plan.cluster.world() == 1) return;
  list.add("world", list.world(), GroupUse::collectives);
  if (!is_hybrid(plan)) return;
  list.add_dimension("replica", plan.copies(), list.shape(Group::replica));
  list.add_dimension("shard", plan.shard_ranks(), list.shape(Group::shard));
}

SaveRules fsdp1_saves(const Plan& plan) {
  return usual::saves_state_dict(plan.framework.fsdp1.state_dict_type, plan);
}

}  // namespace

extern const OptionTable<Framework> kFsdp1OptionTable;

extern const FrameworkTraits kFsdp1Traits;
constinit const FrameworkTraits kFsdp1Traits{
    .kind = FrameworkKind::fsdp1,
    .name = "fsdp1",
    .label = "FSDP1",
    .options = &kFsdp1OptionTable,
    .options_problem = usual::no_options_problem,
    .plan_problem = usual::no_plan_problem,
    .degrees = {.tensor = Support::not_yet,
                .pipeline = Support::never,
                .virtual_pipeline = Support::never,
                .sequence = Support::never,
                .context = Support::never,
                .expert = Support::never},
    .split = SplitStyle::transformers,
    .experts = usual::has_all_tokens,
    .keys = usual::passes_keys_round,
    .data_parallel = true,
    .divides_tokens = false,
    .divides_experts = false,
    .balance = StageBalance::blocks,
    .makes_workspace_late = usual::never,
    .pipeline_problem = usual::no_pipeline_problem,
    .sharding_problem = fsdp1_problem,
    .build = usual::builds_as_written,
    .regime = fsdp1_regime,
    .default_precision = "bf16-autocast",
    .lora_precision = "bf16-pure",
    .takes_recipes = false,
    .compiles = std::nullopt,
    .graph_bytes = usual::one_graph,
    .breaks_at_modules = usual::never,
    .breaks_at_blocks = usual::never,
    .records_graphs = usual::never,
    .keeps_master = false,
    .sync_each_batch = [](const Plan& plan) { return plan.framework.fsdp1.sync_each_batch; },
    .under_trainer = UnderTrainer::autocast,
    .has_zero = false,
    .shard_ranks = fsdp1_shard_ranks,
    .divided_over = fsdp1_divided_over,
    .given = Given::tensors,
    .shards_parameters = fsdp1_shards_parameters,
    .shard_group = usual::shard_group,
    .hops = usual::one_hop,
    .communicators = fsdp1_communicators,
    .foreign_contexts = usual::no_foreign_contexts,
    .set_tape = usual::autograd_tape_with_sums,
    .tiled_mlps = TiledMlps::unknown,
    .selective_runs_blocks = true,
    .checkpoint_problem = usual::no_checkpoint_problem,
    .saved_input = usual::saved_input,
    .held_inputs = usual::no_held_inputs,
    .inputs_on_host = usual::inputs_on_host,
    .parameters_stay = false,
    .keeps_tables = false,
    .frees_sent = false,
    .lower = lower_fsdp1,
    .distinct_ranks = usual::first_of_stages,
    .cut_otherwise = usual::no_ranks,
    .emit_inference = emit_fsdp1_inference,
    .add_frozen = add_fsdp1_frozen,
    .saves = fsdp1_saves,
    .process = &Calibration::pytorch,
    .connects_more = true,
    .generates = false,
    .quantizes_generation = false,
    .runs_rlhf = true,
    .scores_first = false,
    .has_hybrid_engine = false,
    .is_own_engine = false,
    .copies_state_dict = true,
};

}  // namespace shardplan
