// Engines that generate: beside a trainer (workload.rollout), or to serve (workload.engine). What
// both say is described once.
#include <array>

#include "options/limits.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr auto kEngineNames = [] {
  std::array<NamedValue, kEngines.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {kEngines[i]->name, static_cast<std::int64_t>(i), kEngines[i]->words, ""};
  return all;
}();
constexpr auto kPlaces = [] {
  std::array<NamedValue, kPlaceTraits.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {kPlaceTraits[i].name, static_cast<std::int64_t>(kPlaceTraits[i].place),
              kPlaceTraits[i].words, ""};
  return all;
}();

constexpr OptionInfo kEngine{.key = "engine",
                             .help = "which one",
                             .default_text = "`vllm`",
                             .kind = OptionKind::choice,
                             .choices = kEngineNames};
constexpr OptionInfo kShare{
    .key = "gpu_memory_utilization",
    .help = "share of a GPU's memory that it takes in all; its cache is what the rest leaves",
    .doc =
        "share of a GPU's memory that it takes, and of which its cache is what the rest "
        "leaves: of vLLM in all; of SGLang, `mem_fraction_static`, for weights and cache; of "
        "TensorRT-LLM, `free_gpu_memory_fraction`, of what is free, for its cache",
    .default_text = "0.92; of TensorRT-LLM 0.9, of SGLang by the GPU",
    .numbers = {0.01, 1}};
constexpr OptionInfo kTensorParallel{
    .key = "tensor_parallel", .help = "GPUs that share each layer", .integers = {1, 1 << 10}};
constexpr OptionInfo kExpertParallel{
    .key = "expert_parallel",
    .help = "GPUs that divide its experts, if more",
    .doc =
        "GPUs that divide the experts whole: of a served engine all of `tensor_parallel` (vLLM's "
        "`--enable-expert-parallel`, SGLang's `--ep-size`), beside a trainer also more",
    .integers = {1, 1 << 12}};
constexpr OptionInfo kBlock{.key = "block_size",
                            .help = "tokens of a block of its cache",
                            .default_text = "16; of SGLang 1, of TensorRT-LLM 32",
                            .integers = {1, 1 << 16}};
constexpr OptionInfo kBatchedTokens{.key = "max_num_batched_tokens",
                                    .help = "tokens of one of its passes at most",
                                    .default_text = "of vLLM and SGLang by the GPU; 8192",
                                    .integers = {1, 1 << 24}};
constexpr OptionInfo kSequences{
    .key = "max_num_seqs",
    .help = "sequences that it runs at once at most",
    .default_text = "of vLLM by the GPU; of SGLang 256, of TensorRT-LLM 2048",
    .integers = {1, 1 << 20}};
constexpr OptionInfo kModelLength{.key = "max_model_length",
                                  .help = "tokens of a sequence at most",
                                  .default_text = "prompt and new tokens",
                                  .kind = OptionKind::integer,
                                  .integers = {1, kLargestCount}};

constexpr OptionInfo kLongest{
    .key = "longest_answer",
    .help = "tokens at which an answer is cut; new_tokens is then their mean",
    .doc =
        "tokens at which an answer is cut: answers end by themselves, `new_tokens` long in the "
        "mean, and the longest is waited for",
    .default_text = "all are `new_tokens` long",
    .integers = {0, kLargestCount}};

constexpr OptionInfo kAhead{.key = "async_scheduling",
                            .help = "its host schedules the next pass while one runs",
                            .doc =
                                "its host schedules the next pass while one runs: vLLM since "
                                "0.14, but not over Ray's workers",
                            .default_text = "as the engine does",
                            .kind = OptionKind::boolean};

constexpr OptionInfo with_flag(OptionInfo option, std::string_view flag,
                               std::string_view also = {}) {
  option.flag = flag;
  option.also = also;
  return option;
}

constexpr std::array kRollout{
    special<RolloutEngine>(kEngine),
    option<&RolloutEngine::place>(
        {.key = "placement", .help = "whose GPUs it runs on", .choices = kPlaces}),
    option<&RolloutEngine::gpus>({.key = "gpus",
                                  .help = "GPUs of its own where it is separate, of all engines",
                                  .default_text = "not known, and neither is the time",
                                  .integers = {1, 1 << 20}}),
    option<&RolloutEngine::same_machines>(
        {.key = "same_machines",
         .help = "its own GPUs are in the trainer's machines, not in others"}),
    option<&RolloutEngine::steps_off_policy>(
        {.key = "steps_off_policy",
         .help = "updates that answers may be behind; above 0 it answers while the trainer trains",
         .integers = {0, 1 << 20}}),
    option<&RolloutEngine::utilization>(kShare),
    option<&RolloutEngine::tensor_parallel>(kTensorParallel),
    option<&RolloutEngine::expert_parallel>(kExpertParallel),
    option<&RolloutEngine::cuda_graphs>(
        {.key = "cuda_graphs", .help = "decode by CUDA graphs, not by single kernels"}),
    option<&RolloutEngine::sleep_level>(
        {.key = "sleep_level",
         .help = "while others work: 0 keeps all, 1 moves weights to the host, 2 drops them too",
         .integers = {0, 2}}),
    option<&RolloutEngine::block_tokens>(kBlock),
    option<&RolloutEngine::batched_tokens>(kBatchedTokens),
    option<&RolloutEngine::sequences>(kSequences),
    option<&RolloutEngine::weight_bucket>(
        {.key = "weight_bucket",
         .help = "bytes of the buffer through which the trainer hands weights over; 0: none",
         .integers = {0, std::int64_t{1} << 40}}),
    option<&RolloutEngine::schedules_ahead>(kAhead),
    option<&RolloutEngine::layered_summon>(
        {.key = "layered_summon",
         .help =
             "verl: adapters are collected layer by layer, not with all of the model gathered"}),
    option<&RolloutEngine::completions>(
        {.key = "completions",
         .help = "answers to each prompt (GRPO's group), which share what the cache has of it",
         .integers = {1, 1 << 20}}),
    option<&RolloutEngine::longest_answer>(kLongest),
    option<&RolloutEngine::prefix_caching>(
        {.key = "prefix_caching",
         .help = "answers to the same prompt find its full blocks in the cache",
         .doc = "answers to the same prompt find its full blocks in the cache "
                "(vLLM's `enable_prefix_caching`, SGLang's radix cache)"}),
    option<&RolloutEngine::answers_in_work>(
        {.key = "answers_in_work",
         .help = "answers of all engines in work throughout, which go on under new weights "
                 "(partial rollouts)",
         .default_text = "0: a batch's answers end before the next weights",
         .integers = {0, std::int64_t{1} << 40}}),
    option<&RolloutEngine::streams>(
        {.key = "streaming",
         .help = "on GPUs of its own: each update begins once its answers are there, while others "
                 "are generated; all of them end before the next weights"}),
    option<&RolloutEngine::scores>(
        {.key = "log_probabilities",
         .help = "answers come with the log-probabilities of their tokens (vLLM's `logprobs`)",
         .default_text = "`false`; TRL and NeMo RL ask for them"}),
    special<RolloutEngine>(kModelLength),
};

constexpr OptionInfo kServingEngine = [] {
  OptionInfo option = with_flag(kEngine, "--engine");
  option.switches = "--serve=vllm";
  return option;
}();

constexpr std::array kServing{
    special<RolloutEngine>(kServingEngine),
    option<&RolloutEngine::utilization>(
        with_flag(kShare, "--gpu-memory-utilization", "--mem-fraction-static")),
    option<&RolloutEngine::tensor_parallel>(
        with_flag(kTensorParallel, "--engine-tensor-parallel", "--tensor-parallel-size --tp-size")),
    option<&RolloutEngine::expert_parallel>(
        with_flag(kExpertParallel, "--engine-expert-parallel", "--ep-size")),
    option<&RolloutEngine::block_tokens>(with_flag(kBlock, "--block-size", "--page-size")),
    option<&RolloutEngine::batched_tokens>(
        with_flag(kBatchedTokens, "--max-num-batched-tokens", "--chunked-prefill-size")),
    option<&RolloutEngine::sequences>(
        with_flag(kSequences, "--max-num-seqs", "--max-running-requests")),
    special<RolloutEngine>(with_flag(kModelLength, "--max-model-len", "--max-model-length")),
    option<&RolloutEngine::requests>(
        {.key = "requests",
         .flag = "--num-prompts",
         .help = "requests that wait at the start, and no others come; 0: they keep coming",
         .doc =
             "requests that wait when it starts, as a benchmark's do, and no others come; 0: they "
             "keep coming",
         .integers = {0, std::int64_t{1} << 40}}),
    option<&RolloutEngine::longest_answer>(with_flag(kLongest, "--longest-answer")),
    option<&RolloutEngine::cuda_graphs>(
        {.key = "cuda_graphs", .help = "decode by CUDA graphs, not by single kernels"}),
    option<&RolloutEngine::schedules_ahead>(with_flag(kAhead, "--async-scheduling")),
    option<&RolloutEngine::passes_of_turn>(
        {.key = "num_scheduler_steps",
         .flag = "--num-scheduler-steps",
         .help = "passes between two turns of the host (vLLM's V0, as vllm-0.11)",
         .integers = {1, 1 << 10}}),
    option<&RolloutEngine::quantized_share>(
        {.key = "quantized_share",
         .help = "of the weights that `quantization` would store, those that it does; the rest is "
                 "in 16 bits",
         .numbers = {0, 1}}),
    option<&RolloutEngine::grouped_reads>(
        {.key = "grouped_reads",
         .help = "keys and values are read once for the heads of queries that share them"}),
};

}  // namespace

const OptionTable<RolloutEngine>& rollout_table() {
  static constexpr OptionTable<RolloutEngine> kTable{"workload.rollout", "rlhf", kRollout};
  return kTable;
}

const OptionTable<RolloutEngine>& serving_table() {
  static constexpr OptionTable<RolloutEngine> kTable{"workload.engine", "inference", kServing};
  return kTable;
}

}  // namespace shardplan
