// A rollout engine: what generates beside the trainer, with weights and a paged cache of its own.
// What one GPU of it holds follows from the share of the GPU that it is told to take.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rollout/expert_kernels.h"

namespace shardplan {

struct Model;
struct Plan;

/// What runs an engine's passes: vLLM has two, and chooses by the model.
struct EngineRunner {
  /// As many fp32 rows of logits for each sequence are there at once while the profile chooses
  /// tokens, beside the 16-bit one.
  std::int64_t profiled_rows = 4;
  bool holds_stream = false;  ///< and what the pass before returned
  /// Of each word of the vocabulary for each sequence that may run: how often it was said, which
  /// penalties ask for.
  std::int64_t counter_bits = 0;
  std::int64_t sequence_bytes = 0;  ///< of other states of a sequence that may run
  /// Its profile makes a few CUDA graphs, and takes what all will have off the share.
  bool graphs_in_share = false;
  /// What stays beside the share once passes have run: what the allocator keeps, and what graphs
  /// take more than that profile said.
  std::int64_t kept_bytes = 0;
  /// Between two passes of the GPU, which scheduling does not hide. Assumed.
  double pass_seconds = 0.5e-3;
};

/// CUDA graphs that are made for many sizes of a pass, beside the share (core/rollout/graphs.h).
struct EngineGraphs {
  std::int64_t most_tokens = 0;  ///< of the largest; 0: the engine's are not described
  /// The driver's, of a layer: of passes that are cut at attention, and of whole ones.
  std::int64_t cut_bytes = 0, whole_bytes = 0;
  /// Results of attention in fp32, in so many parts, of the largest whole pass.
  double attention_parts = 0;
};

/// What a host takes for a pass while the GPU waits for it. Of one machine: docs/explanation/
/// serving.md.
struct EngineHost {
  /// It works after the GPU's pass, not beside it: the next is not scheduled ahead. Then a turn
  /// takes so long, and each sequence that runs: its token taken in, its next scheduled.
  bool in_turns = false;
  double turn_seconds = 0, turn_sequence_seconds = 0;
  double pass_seconds = 0;  ///< of any pass: scheduled, started, its tokens taken in
  /// Beside it, of each sequence whose log-probabilities are asked for, and of all at most.
  double scored_seconds = 0, scored_most_seconds = 0;
  double sequence_seconds = 0;  ///< of each that runs: answered
  /// Beside that of a pass, of each layer: whose modules run one by one, where there are no graphs;
  /// whose compiled kernels are started; between whose graphs attention is started.
  double eager_seconds = 0, layer_seconds = 0, cut_seconds = 0;
  /// Beside it where no graph starts the layer: the engine's own code for routed experts; for those
  /// that all tokens take, which are within it and not compiled; to choose experts in groups.
  double experts_seconds = 0, shared_seconds = 0, grouped_seconds = 0;
  double request_seconds = 0;  ///< of a request: it comes in, its first token goes out
  /// Of a tensor that its loader is given alone (load_weights).
  double tensor_seconds = 0;
};

/// How fast an engine gives the driver its memory back and asks for it again; 0: not measured.
struct EngineSleep {
  double wakes_bytes_per_second = 0, sleeps_bytes_per_second = 0;
};

/// All-reduces among the GPUs of a node by kernels of an engine's own, which read the others'
/// memory (vllm/distributed/device_communicators/custom_all_reduce.py; SGLang's are the same).
struct OwnExchange {
  std::int64_t most_bytes = std::int64_t{8} << 20;  ///< of one; larger ones are the library's
  /// Beside what its bytes take: of each, and of each GPU. Assumed where they were not measured.
  double seconds = 10e-6, gpu_seconds = 0;
  double slowdown = 1;  ///< what its bytes take more than the library's
};

/// Of two and of four H200, in CUDA graphs (data/measurements/rates/h200/h200-vllm-exchanges.json):
/// 5.0 and 6.2 us, and 260 of the 351 GB/s that the library reaches. Fitted to these two.
inline constexpr OwnExchange kVllmExchange{
    .seconds = 3.8e-6, .gpu_seconds = 0.6e-6, .slowdown = 1.35};

/// Who makes an engine, as vLLM tells them apart (usage/usage_lib.py).
enum class EngineCaller : std::uint8_t {
  library,  ///< a program with the engine inside (the class LLM)
  server,   ///< `vllm serve`
  program,  ///< a program that starts its asynchronous engine
};

/// Sequences at once and tokens of a pass, at most.
struct PassSizes {
  std::int64_t sequences = 0, tokens = 0;
};

/// What an engine chooses where nobody says it, on GPUs of so much memory and more.
struct EngineSizes {
  std::int64_t least_bytes = 0;
  std::array<PassSizes, 3> of_caller = {};  ///< by EngineCaller
  /// Sequences of the largest CUDA graph, of engines on up to three GPUs and on more. 0: not by the
  /// GPU.
  std::int64_t graphs = 0, graphs_of_many = 0;
};

/// What a share of weights and cache leaves, where nobody says the share.
struct EngineReserve {
  std::int64_t bytes = 0;  ///< 0: the share is the same on all GPUs
  double token_bytes = 0;  ///< of each of a pass
  std::int64_t least_tokens = 0;
  std::int64_t gpu_bytes = 0;  ///< of each that the engine has
  /// At least so much of GPUs with more than so much.
  std::int64_t least_bytes = 0, large_gpu = 0;
};

/// vllm/engine/arg_utils.py, get_batch_defaults; config/scheduler.py of the asynchronous engine.
inline constexpr std::array<EngineSizes, 5> kVllmSizes{
    {{std::int64_t{70} << 30, {{{1024, 16384}, {1024, 8192}, {128, 2048}}}},
     {0, {{{256, 8192}, {256, 2048}, {128, 2048}}}}}};

/// sglang/srt/server_args.py, _handle_gpu_memory_settings. Its sequences at once follow from its
/// cache (2,048 to 4,096), which is not modelled.
inline constexpr std::array<EngineSizes, 5> kSglangSizes = [] {
  const auto row = [](std::int64_t gib, std::int64_t tokens, std::int64_t graphs,
                      std::int64_t of_many) {
    const PassSizes all{256, tokens};
    return EngineSizes{gib << 30, {{all, all, all}}, graphs, of_many};
  };
  return std::array<EngineSizes, 5>{row(160, 16384, 512, 512), row(60, 8192, 256, 512),
                                    row(35, 4096, 32, 160), row(20, 2048, 24, 80),
                                    row(0, 2048, 8, 8)};
}();

/// What an engine does unless it is told otherwise.
struct EngineDescription {
  std::string_view name;     ///< in jobs
  std::string_view words;    ///< with the version that was read
  double utilization = 0.9;  ///< of the GPU's memory
  std::int64_t block_tokens = 16;
  std::int64_t block_step = 1;            ///< blocks have a multiple of so many tokens
  std::int64_t batched_tokens = 8192;     ///< of one pass at most, which its profile runs
  std::int64_t sequences = 256;           ///< at once at most
  std::array<EngineSizes, 5> sizes = {};  ///< largest GPUs first; none: those two, everywhere
  EngineReserve reserve = {};
  std::int64_t vocabulary_multiple = 64;
  /// fp32 tensors of a row of logits for each sequence while tokens are chosen, beside the 16-bit
  /// one: logits, their log-softmax, probabilities, and as many random numbers.
  std::int64_t sampler_rows = 4;
  EngineRunner runner = {};             ///< of dense networks
  EngineRunner runner_of_experts = {};  ///< of networks with experts
  /// The share is of weights and cache alone: what passes and graphs take comes on top. Else the
  /// engine runs a pass first, and its share is of all that it takes.
  bool share_is_static = false;
  /// The share is of what weights and a pass leave free, and all of it is cache.
  bool share_is_of_free = false;
  /// Of CUDA graphs for each sequence at once, where they are outside of the share.
  std::int64_t graph_bytes = 0;
  /// Cosines and sines of all positions are among its weights.
  bool tables_of_positions = false;
  /// Rows of the stream that a pass holds beside those that products take and make: of its caller.
  std::int64_t held_rows = 0;
  /// Counters of words (EngineRunner) are taken off the share; else they come on top.
  bool counters_in_share = true;
  /// What the driver gives libraries and kernels between the first look at the GPU and the cache:
  /// taken off the share, and no tensor.
  std::int64_t library_bytes = 0;
  EngineGraphs graphs = {};
  EngineHost host = {};
  EngineSleep sleep = {};
  OwnExchange own_exchange = {};
  /// Of each step of an exchange from GPU to GPU beside the library's: kernels that a host starts
  /// one by one come to it at different times on each GPU.
  double exchange_step_seconds = 0;
  /// Of the rate of other products, what its kernel for experts reaches where its tiles are not
  /// known, or do not take the weights' format.
  double expert_rate = 1;
  ExpertKernel experts = {};
  /// A kernel of its own makes the operands of a product in fp8 or int8 (vLLM and SGLang); else the
  /// kernel before it does.
  bool quantizes_apart = true;
  WidenedExperts widened_experts = {};
  /// Completions of a prompt find its blocks in the pass that computes them: blocks are known when
  /// they are given out. Else they find them in later passes.
  bool finds_in_pass = true;
  /// The variable that lets it start where a sequence could be longer than the model's positions;
  /// "": it starts.
  std::string_view allows_longer = {};
  std::string_view share_key = {};  ///< what the engine calls the share
  std::string_view source = {};
};

/// What vLLM's host takes between two passes where it does not schedule ahead, and for each
/// sequence: fitted to four published rows of few sequences, and to four pairs of times between
/// tokens (docs/explanation/serving.md).
inline constexpr double kTurnSeconds = 1.3e-3, kTurnOfSequence = 19e-6;

inline constexpr EngineDescription kVllm{
    .name = "vllm",
    .words = "vLLM 0.27",
    .utilization = 0.92,  // vllm/config/cache.py
    .block_step = 16,     // v1/attention/backends/flash_attn.py, get_supported_kernel_block_sizes
    .sizes = kVllmSizes,
    // v1/worker/gpu/sample: sampler.py, apply_sampling_params; penalties.py, counts in 32 bits and
    // a mask. The rest is fitted to what vLLM 0.25 was measured to take on an H100:
    // docs/explanation/serving.md.
    .runner = {.profiled_rows = 1,
               .holds_stream = true,
               .counter_bits = 33,
               .sequence_bytes = 40 << 10,
               .kept_bytes = std::int64_t{256} << 20,
               .pass_seconds = 0.25e-3},
    // Logits, those that top-k leaves, probabilities: v1/worker/gpu_model_runner.py,
    // _dummy_sampler_run; FlashInfer's sampling.top_k_top_p_sampling_from_logits.
    // It makes graphs too: profile_cudagraph_memory.
    .runner_of_experts = {.profiled_rows = 3,
                          .holds_stream = true,
                          .graphs_in_share = true,
                          .kept_bytes = std::int64_t{544} << 20},
    .tables_of_positions = true,  // model_executor/layers/rotary_embedding/base.py
    .held_rows = 5,
    .library_bytes = std::int64_t{230} << 20,
    .graphs = {.most_tokens = 512,
               .cut_bytes = 141'000,
               .whole_bytes = 49'400,
               .attention_parts = 80},
    .host = {.turn_seconds = kTurnSeconds,
             .turn_sequence_seconds = kTurnOfSequence,
             .pass_seconds = 2.23e-3,
             .scored_seconds = 0.205e-3,
             .scored_most_seconds = 3.3e-3,
             .sequence_seconds = 31e-6,
             .eager_seconds = 0.58e-3,
             .layer_seconds = 0.51e-3,
             .cut_seconds = 0.30e-3,
             .experts_seconds = 1.36e-3,
             .shared_seconds = 0.79e-3,
             .grouped_seconds = 0.74e-3,
             .request_seconds = 3.7e-3,
             .tensor_seconds = 0.327e-3},
    .sleep = {.wakes_bytes_per_second = 520e9, .sleeps_bytes_per_second = 475e9},
    .own_exchange = kVllmExchange,
    .expert_rate = 0.3,  // docs/explanation/serving.md
    .experts = kVllmExperts,
    .widened_experts = kMarlinExperts,
    .finds_in_pass = true,
    .allows_longer = "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    .share_key = "gpu_memory_utilization",
    .source =
        "vllm/v1/worker/gpu_worker.py, determine_available_memory; v1/worker/utils.py, "
        "request_memory; v1/core/kv_cache_utils.py, get_num_blocks; v1/core/kv_cache_manager.py, "
        "get_computed_blocks"};

/// As it was before its profile counted what stays (0.27: utils/mem_utils.py, memory_profiling):
/// counters come on top of the share.
inline constexpr EngineDescription kVllm25 = [] {
  EngineDescription engine = kVllm;
  engine.name = "vllm-0.25";
  engine.words = "vLLM 0.25";
  engine.counters_in_share = false;
  return engine;
}();

/// Of 2025, whose one runner is that of networks with experts. What it takes beside its tensors,
/// and its host, was not measured; log-probabilities are taken to cost what they do today. Nobody
/// has asynchronous scheduling who does not ask for it (until 0.14): what published times between
/// tokens have more without it grows with the sequences (docs/explanation/serving.md).
inline constexpr EngineDescription kVllm11{
    .name = "vllm-0.11",
    .words = "vLLM 0.11",
    .utilization = 0.9,
    .block_step = 16,
    .sizes = kVllmSizes,
    .runner = {.profiled_rows = 3, .holds_stream = true},
    .runner_of_experts = {.profiled_rows = 3, .holds_stream = true},
    .host = {.in_turns = true,
             .turn_seconds = kTurnSeconds,
             .turn_sequence_seconds = kTurnOfSequence,
             .scored_seconds = kVllm.host.scored_seconds,
             .scored_most_seconds = kVllm.host.scored_most_seconds},
    .own_exchange = kVllmExchange,
    .expert_rate = 0.3,
    .widened_experts = kMarlinExperts,
    .allows_longer = "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    .share_key = "gpu_memory_utilization",
    .source =
        "vllm/v1/worker/gpu_worker.py, determine_available_memory; v1/worker/gpu_model_runner.py, "
        "profile_run"};

/// With AMD's kernels for experts (VLLM_USE_AITER_MOE, VLLM_ROCM_USE_AITER_MOE), whose rate is
/// fitted to two rows of MLPerf on MI300X and judged by two on MI325X: docs/explanation/serving.md.
inline constexpr EngineDescription kVllm11Aiter = [] {
  EngineDescription engine = kVllm11;
  engine.name = "vllm-0.11-aiter";
  engine.words = "vLLM 0.11 with AITER";
  engine.expert_rate = 0.6;
  return engine;
}();

/// Of its own pages: one token each unless told otherwise; tables of words are padded alike
/// (srt/layers/vocab_parallel_embedding.py).
inline constexpr EngineDescription kSglang{
    .name = "sglang",
    .words = "SGLang 0.5",
    .utilization = 0.88,  // where the GPU is not known
    .block_tokens = 1,
    .sizes = kSglangSizes,
    .reserve = {.bytes = std::int64_t{512} << 20,
                .token_bytes = 1.5 * (1 << 20),
                .least_tokens = 2048,
                .gpu_bytes = std::int64_t{128} << 20,
                .least_bytes = std::int64_t{10} << 30,
                .large_gpu = std::int64_t{60} << 30},
    .share_is_static = true,
    .graph_bytes = std::int64_t{2} << 20,  // what its own default of the share leaves for them
    .own_exchange = kVllmExchange,         // the same kernels
    .expert_rate = 0.3,                    // the same kernel
    .finds_in_pass = false,  // srt/managers/schedule_policy.py: first come, first served
    .allows_longer = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    .share_key = "mem_fraction_static",
    .source =
        "sglang/srt/model_executor/model_runner_kv_cache_mixin.py, profile_max_num_token, "
        "get_cell_size_per_token; srt/server_args.py, _handle_gpu_memory_settings"};

/// Of 2024, one process that schedules, starts the GPU and prepares answers in turns (its engine
/// V0).
inline constexpr EngineDescription kVllm06{
    .name = "vllm-0.6",
    .words = "vLLM 0.6",
    // What vLLM's own benchmark of 2024-11 takes beside the GPU's work:
    // docs/explanation/serving.md.
    .runner = {.pass_seconds = 2.0e-3},
    .runner_of_experts = {.pass_seconds = 2.0e-3},
    .own_exchange = kVllmExchange,
    .expert_rate = 0.5,  // assumed: no row was kept to judge it
    .allows_longer = "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    .share_key = "gpu_memory_utilization",
    .source = "vllm/worker/worker.py, determine_num_available_blocks; vllm/config.py"};

/// Its executor, with CUDA graphs.
inline constexpr EngineDescription kTensorRtLlm{
    .name = "tensorrt-llm",
    .words = "TensorRT-LLM 1.2",
    .block_tokens = 32,
    .sequences = 2048,
    .share_is_of_free = true,
    .quantizes_apart = false,  // within its plugins of norms and activations
    .share_key = "free_gpu_memory_fraction",
    .source =
        "cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp, calculateMaxNumBlocks; "
        "tensorrt_llm/llmapi/llm_args.py"};

/// Of 2024: its benchmark starts kernel after kernel (bench/benchmark/dataclasses.py,
/// PerformanceOptions.cuda_graphs).
inline constexpr EngineDescription kTensorRtLlm014{
    .name = "tensorrt-llm-0.14",
    .words = "TensorRT-LLM 0.14",
    .block_tokens = 64,
    .sequences = 2048,
    .share_is_of_free = true,
    // Half of the dense rows of its own page: docs/explanation/serving.md.
    .exchange_step_seconds = 13.3e-6,
    .quantizes_apart = false,  // within its plugins of norms and activations
    .share_key = "free_gpu_memory_fraction",
    .source =
        "cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp, calculateMaxNumBlocks; "
        "tensorrt_llm/bench/run/run.py"};

inline constexpr std::array kEngines{&kVllm,        &kSglang, &kVllm25,      &kVllm11,
                                     &kVllm11Aiter, &kVllm06, &kTensorRtLlm, &kTensorRtLlm014};

enum class EnginePlace : std::uint8_t {
  colocated,  ///< on the trainer's GPUs
  separate,   ///< on GPUs of its own
};

/// What follows from whose GPUs an engine runs on. Nobody asks which place it is.
struct PlaceTraits {
  EnginePlace place;
  std::string_view name, words;
  bool shares_gpus;    ///< holds memory of the trainer's GPUs, which work in turns with it
  bool can_sleep;      ///< gives it back while others work
  bool can_run_ahead;  ///< answers while the trainer trains
};
inline constexpr std::array kPlaceTraits{
    PlaceTraits{EnginePlace::colocated, "colocated", "on the trainer's GPUs", true, true, false},
    PlaceTraits{EnginePlace::separate, "separate", "on GPUs of its own", false, false, true}};
constexpr const PlaceTraits& traits_of(EnginePlace place) {
  return kPlaceTraits[static_cast<std::size_t>(place)];
}

struct RolloutEngine {
  const EngineDescription* engine = &kVllm;  ///< never null
  EnginePlace place = EnginePlace::colocated;
  /// Of its own, of all engines. Absent: not said, or the trainer's.
  std::optional<std::int64_t> gpus;
  bool same_machines = false;  ///< its own GPUs are in the trainer's machines
  /// Updates of the weights that answers may be behind those that they train: above 0 the engine
  /// goes on while the trainer trains.
  std::int64_t steps_off_policy = 0;
  double utilization = kVllm.utilization;
  std::int64_t tensor_parallel = 1;
  std::int64_t expert_parallel = 1;  ///< GPUs that divide the experts, if more
  bool cuda_graphs = true;
  /// The next pass is scheduled while one runs. Absent: as the engine does (EngineHost::in_turns).
  std::optional<bool> schedules_ahead;
  /// Passes between two turns of such an engine's host (vLLM's V0, num_scheduler_steps).
  std::int64_t passes_of_turn = 1;
  /// Of the weights that the format stores, those that a checkpoint has in it; the rest is in 16
  /// bits (mixed precision of ModelOpt's AutoQuantize).
  double quantized_share = 1;
  /// 0: everything stays while others work. 1: the cache goes, and weights to the host. 2: both go.
  std::int64_t sleep_level = 0;
  std::int64_t block_tokens = kVllm.block_tokens;
  std::int64_t batched_tokens = kVllm.batched_tokens;
  std::int64_t sequences = kVllm.sequences;
  /// Of the largest CUDA graph; 0: as many as it has at once, or as the engine's graphs say.
  std::int64_t graph_sequences = 0;
  std::int64_t model_length = 0;  ///< tokens of a sequence at most; 0: prompt and new ones
  /// Answers to each prompt of a workload (GRPO's group): with prefix_caching they share its
  /// blocks.
  std::int64_t completions = 1;
  /// Tokens at which an answer is cut. Answers then end by themselves, as long as the workload says
  /// in the mean. 0: all are as long as it says.
  std::int64_t longest_answer = 0;
  /// Answers of all engines that are in work throughout: those that a hand-over finds go on under
  /// the new weights, and nobody waits for the longest. 0: a batch's answers end first.
  std::int64_t answers_in_work = 0;
  /// On GPUs of its own, in turns with the trainer: an update begins once its answers are there,
  /// while those of the next ones are made.
  bool streams = false;
  bool prefix_caching = true;
  bool scores = false;  ///< answers come with the log-probabilities of their tokens
  /// Keys and values are read once for all heads of queries that share them. Kernels that do not
  /// (TensorRT-LLM before its XQA) read them once for each.
  bool grouped_reads = true;
  /// Requests that wait when the engine starts, of all engines; no others come. 0: they keep
  /// coming.
  std::int64_t requests = 0;
  /// Bytes of the trainer's buffer through which weights are handed over; 0: tensor by tensor.
  std::int64_t weight_bucket = 0;
  /// Adapters are collected layer by layer; else with all of the model gathered.
  bool layered_summon = false;

  const PlaceTraits& at() const { return traits_of(place); }
  bool in_turns() const { return schedules_ahead ? !*schedules_ahead : engine->host.in_turns; }
  bool sleeps() const { return at().can_sleep && sleep_level > 0; }
  bool runs_ahead() const { return at().can_run_ahead && steps_off_policy > 0; }
};

/// Of one GPU, in bytes.
struct EngineMemory {
  std::int64_t budget = 0;   ///< all tensors that it takes: the cache is what the rest leaves
  std::int64_t weights = 0;  ///< in 16 bits, its share of each layer, and tables of positions
  /// The peak of its profile's pass, or of choosing tokens; what it holds beside it from the start;
  /// and what of it is outside of its share.
  std::int64_t activations = 0;
  std::int64_t outside = 0;      ///< of the activations: graphs, counters
  std::int64_t cache = 0;        ///< whole blocks; 0: not even one
  std::int64_t block_bytes = 0;  ///< of all layers
  std::int64_t blocks = 0;
  std::int64_t blocks_needed = 0;  ///< for one sequence of the full length: fewer, and it stops
  /// What it keeps when it sleeps, of what is neither weights nor cache.
  std::int64_t asleep = 0;
  std::int64_t process = 0;  ///< its own process, beside all of it; 0: not counted
};

/// What runs the engine's passes over such a network.
const EngineRunner& runner_of(const RolloutEngine& engine, const Model& generator);

/// `generator`: the network with a cache, whole; `generation`: how it is asked (prompt and new
/// tokens, GPU, element types).
EngineMemory engine_memory(const RolloutEngine& engine, const Model& generator,
                           const Plan& generation, std::int64_t process = 0);

/// The least utilization, in hundredths, at which one sequence of the full length has room.
double least_utilization(const RolloutEngine& engine, const EngineMemory& memory,
                         const Plan& generation);

}  // namespace shardplan
