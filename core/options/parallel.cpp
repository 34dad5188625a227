// How GPUs divide a model.
#include "frameworks/registry.h"
#include "options/choices.h"
#include "options/limits.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

OptionValue divides_tokens(const Plan& plan) {
  return traits_of(plan).divides_tokens && plan.parallel.tensor > 1;
}
OptionValue expert_tensor_of(const Plan& plan) {
  return traits_of(plan).divides_experts ? plan.parallel.tensor : std::int64_t{1};
}
OptionValue schedule_of(const Plan& plan) {
  return static_cast<std::int64_t>(plan.parallel.virtual_pipeline > 1
                                       ? PipelineSchedule::interleaved
                                       : PipelineSchedule::one_f_one_b);
}
OptionValue balance_of(const Plan& plan) {
  return static_cast<std::int64_t>(traits_of(plan).balance.get());
}

bool has_stages(const Plan& plan) {
  return plan.parallel.pipeline > 1;
}

template <auto Member>
bool differs(const Plan& plan) {
  return plan.parallel.*Member != Parallel{}.*Member;
}

/// A number of GPUs or chunks; only one that divides something is written.
template <auto Member>
constexpr Option<Plan> degree(std::string_view key, std::string_view flag, std::string_view also,
                              std::string_view help, std::string_view label,
                              bool changes_passes = true) {
  return option<&Plan::parallel, Member>({.key = key,
                                          .flag = flag,
                                          .also = also,
                                          .help = help,
                                          .label = label,
                                          .integers = {1, kLargestDegree},
                                          .changes_passes = changes_passes},
                                         {.written = differs<Member>});
}

constexpr std::array kParallelOptions{
    special<Plan>({.key = "data",
                   .flag = "--data-parallel",
                   .also = "--dp --data-parallel-size --dp-size",
                   .help = "GPUs with samples of their own: what the other degrees leave",
                   .doc = "GPUs with samples of their own",
                   .default_text = "what the others leave",
                   .kind = OptionKind::integer,
                   .integers = {1, 1 << 30}}),
    degree<&Parallel::tensor>("tensor", "--tensor-parallel",
                              "--tp --tensor-parallel-size --tensor-model-parallel-size --tp-size",
                              "GPUs that share each layer", "Tensor parallel"),
    degree<&Parallel::pipeline>(
        "pipeline", "--pipeline-parallel",
        "--pp --pipeline-parallel-size --pipeline-model-parallel-size --pp-size",
        "stages of layers; micro-batches are gradient_accumulation", "Pipeline stages", false),
    degree<&Parallel::virtual_pipeline>(
        "virtual_pipeline", "--virtual-pipeline", "--vp --virtual-pipeline-stages",
        "chunks of layers on each stage", "Chunks per stage", false),
    degree<&Parallel::sequence>("sequence", "--ulysses", "--sp --sp-size --sequence-parallel-size",
                                "GPUs that share a sequence, exchanging heads (Ulysses)",
                                "Ulysses (sequence)"),
    degree<&Parallel::context>(
        "context", "--context-parallel", "--cp --context-parallel-size --cp-size",
        "GPUs that share a sequence, passing keys and values round (ring)", "Context parallel"),
    degree<&Parallel::expert>("expert", "--expert-parallel",
                              "--ep --expert-parallel-size --expert-model-parallel-size --ep-size",
                              "GPUs that share the experts of a layer", "Expert parallel"),
    option<&Plan::parallel, &Parallel::expert_tensor>(
        {.key = "expert_tensor",
         .flag = "--expert-tensor-parallel",
         .help = "GPUs that share one expert",
         .default_text = "`tensor` with megatron, else 1",
         .integers = {1, kLargestDegree},
         .changes_passes = true},
        {.open = expert_tensor_of,
         .written =
             [](const Plan& plan) {
               return OptionValue(plan.parallel.expert_tensor) != expert_tensor_of(plan);
             }}),
    option<&Plan::parallel, &Parallel::expert_imbalance>(
        {.key = "expert_imbalance",
         .help = "tokens sent to the fullest GPU's experts, over the mean",
         .numbers = {1, 64},
         .changes_passes = true},
        {.written = differs<&Parallel::expert_imbalance>}),
    option<&Plan::parallel, &Parallel::sequence_parallel>(
        {.key = "sequence_parallel",
         .flag = "--sequence-parallel",
         .help = "tensor-parallel GPUs divide along tokens what each would keep (Megatron)",
         .default_text = "true with megatron and native where `tensor` is above 1, else "
                         "false",
         .changes_passes = true},
        {.open = divides_tokens, .written = differs<&Parallel::tensor>}),
    option<&Plan::parallel, &Parallel::schedule>(
        {.key = "schedule",
         .flag = "--pipeline-schedule",
         .help = "the order in which a stage takes micro-batches",
         .default_text = "`1f1b`; `interleaved` with chunks",
         .choices = kSchedules},
        {.open = schedule_of, .written = has_stages}),
    option<&Plan::parallel, &Parallel::balance>(
        {.key = "balance",
         .flag = "--stage-balance",
         .help = "what stages have as much of as each other",
         .default_text = "`blocks`; `parameters` with deepspeed, `blocks_and_ends` with fsdp2",
         .choices = kBalances},
        {.open = balance_of,
         .written =
             [](const Plan& plan) {
               return has_stages(plan) && plan.parallel.balance != traits_of(plan).balance.get();
             }}),
    option<&Plan::parallel, &Parallel::stage_layers>(
        {.key = "stage_layers",
         .flag = "--stage-layers",
         .help = "blocks of each stage, such as 7,8,8,7",
         .doc = "blocks of every chunk",
         .default_text = "by `balance`",
         .elements = "numbers of blocks",
         .integers = {0, kLargestDegree}},
        {.written = has_stages}),
};

}  // namespace

const OptionTable<Plan>& parallel_table() {
  static constexpr OptionTable<Plan> kTable{"parallel", "", kParallelOptions};
  return kTable;
}

}  // namespace shardplan
