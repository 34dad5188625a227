// What an engine holds and how fast it answers, from sums that can be made by hand.
#include "estimate/serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "rollout/engine.h"
#include "serving/engine_pass.h"
#include "serving/expert_products.h"
#include "serving_testing.h"

namespace shardplan::serving_test {
namespace {

// Llama 3.1 8B: 32 layers, 8 heads of keys, 128 wide, keys and values in 2 bytes.
constexpr std::int64_t kTokenBytes = 2 * 32 * 8 * 128 * 2;

TEST(Serving, CacheIsWhatTheShareLeavesInWholeBlocks) {
  const Estimate e = estimated(served({}));
  const EngineMemory& m = e.serving->memory;
  EXPECT_EQ(m.block_bytes, 16 * kTokenBytes);
  EXPECT_EQ(m.blocks, (m.budget - m.weights - m.activations) / m.block_bytes);
  EXPECT_EQ(e.serving->room, m.blocks / ((2048 + 256) / 16));
  EXPECT_EQ(e.serving->sequences, e.serving->room);
  EXPECT_EQ(e.serving->limited_by, "cache");
  EXPECT_TRUE(e.verdict.fits);
  EXPECT_EQ(e.allocated.point, m.budget);
}

// SGLang and TensorRT-LLM take their share of what their own process leaves free.
TEST(Serving, SharesOfWhatIsFreeLeaveTheProcessItsOwn) {
  const Estimate all = estimated(
      served({{"engine", {{"engine", "tensorrt-llm"}, {"gpu_memory_utilization", 1.0}}}}));
  EXPECT_EQ(all.device.upper, all.usable_bytes);
  EXPECT_TRUE(all.verdict.fits);
  const Estimate half =
      estimated(served({{"engine", {{"engine", "sglang"}, {"gpu_memory_utilization", 0.5}}}}));
  const EngineMemory& s = half.serving->memory;
  EXPECT_NEAR(static_cast<double>(s.cache + s.weights),
              0.5 * static_cast<double>(half.usable_bytes - s.process),
              static_cast<double>(s.block_bytes));
}

// gpt-oss is published in MXFP4, DeepSeek V3 in fp8: an engine loads them so.
TEST(Serving, TakesWeightsAsTheCheckpointStoresThem) {
  const Job stored = served({{"quantization", "mxfp4"}}, "1xH100", {{"model", "gpt-oss-20b"}});
  const Job unsaid = served({}, "1xH100", {{"model", "gpt-oss-20b"}});
  EXPECT_EQ(estimated(unsaid).model_bytes, estimated(stored).model_bytes);
  EXPECT_THAT(unsaid.assumed,
              testing::Contains("quantization: mxfp4, in which the checkpoint is stored"));
  const Job wide = served({{"quantization", "none"}}, "1xH100", {{"model", "gpt-oss-20b"}});
  EXPECT_GT(estimated(wide).model_bytes, 2 * estimated(stored).model_bytes);
}

// gpt-oss writes its attention out, and every second layer sees 128 tokens: of a prompt of s tokens
// the others compute 4 s²/2 heads times width.
TEST(Serving, ComputesAttentionThatAClassWritesOut) {
  const auto attention = [](std::int64_t prompt) {
    const Job job = served({{"prompt_length", prompt}}, "1xH100", {{"model", "gpt-oss-20b"}});
    const auto length = static_cast<double>(prompt);
    return ServedNetwork(job.model, job.plan, load_calibration().time)
        .time_of({.prompt_tokens = length, .prompt_length = length})
        .attention;
  };
  constexpr double kLength = 32768, kLayers = 12, kHeads = 64, kWidth = 64;
  const double flops = kLayers * 2 * kLength * kLength * kHeads * kWidth;
  EXPECT_GT(attention(32768), flops / 989e12);
  EXPECT_LT(attention(32768), flops / 250e12);
  EXPECT_GT(attention(32768), 3 * attention(16384));
}

TEST(Serving, WhatPromptsShareIsThereOnce) {
  const Estimate apart = estimated(served({}));
  const Estimate shared = estimated(served({{"shared_prefix", 1024}}));
  EXPECT_EQ(shared.serving->room, (apart.serving->memory.blocks - 64) / ((1024 + 256) / 16));
  EXPECT_LT(shared.serving->first_token_seconds, apart.serving->first_token_seconds);
}

// 48 layers of experts: a pass of 1,024 tokens is started kernel by kernel, and the GPU waits; one
// of 256 from graphs that are cut at attention.
TEST(Serving, AFirstTokenWaitsForTheHostThatStartsExperts) {
  const auto first = [](const char* model, int prompt) {
    return estimated(served({{"prompt_length", prompt}}, "1xH200-141GB", Json{{"model", model}}))
        .serving->first_token_seconds;
  };
  const EngineHost& host = kVllm.host;
  const double come_and_go = host.request_seconds + 2 * host.pass_seconds;
  EXPECT_NEAR(first("qwen3-30b-a3b", 1024),
              come_and_go + 48 * (host.layer_seconds + host.experts_seconds), 1e-6);
  EXPECT_LT(first("qwen3-30b-a3b", 256), first("qwen3-30b-a3b", 1024) / 3);
  // DeepSeek's choice in groups, and an expert that all tokens take.
  const Model glm =
      served({{"engine", Json{{"tensor_parallel", 8}}}}, "8xH200-141GB", Json{{"model", "glm-4.5"}})
          .model;
  EXPECT_TRUE(glm.facts.grouped_experts);
  EXPECT_TRUE(experts_of(glm.segments[glm.segments.size() - 2], glm).shared);
}

// Few requests, and some answers eight times as long as the mean: the last ones are waited for.
// Many: they are a small part of the time.
TEST(Serving, AQueueEndsWithItsLongestAnswer) {
  const auto seconds = [](int requests, int longest) {
    Json engine{{"requests", requests}};
    if (longest > 0) engine["longest_answer"] = longest;
    return estimated(served({{"engine", engine}})).serving->queue_seconds;
  };
  EXPECT_GT(seconds(64, 2048), 1.8 * seconds(64, 0));
  EXPECT_LT(seconds(64, 2048), 8 * seconds(64, 0));
  EXPECT_LT(seconds(20000, 2048), 1.2 * seconds(20000, 0));
  EXPECT_GT(seconds(20000, 2048), 0.9 * seconds(20000, 0));
}

TEST(Serving, MoreSequencesThanTheCacheHoldsDoNotFit) {
  const std::int64_t room = estimated(served({})).serving->room;
  const Estimate all = estimated(served({{"batch", room}}));
  EXPECT_TRUE(all.verdict.fits);
  EXPECT_EQ(all.serving->sequences, room);
  const Estimate more = estimated(served({{"batch", room + 1}}));
  EXPECT_FALSE(more.verdict.fits);
  EXPECT_EQ(more.verdict.gpu.needed, more.serving->memory.weights +
                                         more.serving->memory.activations +
                                         (room + 1) * (2304 / 16) * 16 * kTokenBytes +
                                         more.device.point - more.allocated.point);
}

TEST(Serving, FewerBitsLeaveMoreRoom) {
  const Estimate plain = estimated(served({}));
  const Estimate narrow = estimated(served({{"quantization", "fp8"}, {"kv_cache_dtype", "fp8"}}));
  EXPECT_EQ(narrow.serving->memory.block_bytes, plain.serving->memory.block_bytes / 2);
  EXPECT_LT(narrow.serving->memory.weights, plain.serving->memory.weights * 6 / 10);
  EXPECT_GT(narrow.serving->room, 2 * plain.serving->room);
  const Json one = {{"batch", 1}};
  EXPECT_LT(estimated(served({{"batch", 1}, {"quantization", "awq"}})).serving->quiet_token_seconds,
            estimated(served(one)).serving->quiet_token_seconds / 2);
}

// A token cannot come before its weights and its keys and values have been read.
TEST(Serving, NoPassIsFasterThanTheMemory) {
  for (const std::int64_t batch : {1, 16, 64, 200}) {
    const Job job = served({{"batch", batch}});
    const Estimate e = estimated(job);
    const double bytes = static_cast<double>(e.serving->memory.weights) +
                         static_cast<double>(batch * 2176 * kTokenBytes);
    EXPECT_GT(e.serving->quiet_token_seconds, bytes / *job.plan.cluster.gpu.memory_bandwidth)
        << batch;
    EXPECT_GE(e.serving->token_seconds, e.serving->quiet_token_seconds) << batch;
  }
}

TEST(Serving, MoreSequencesGiveMoreTokensInAllAndFewerEach) {
  double in_all = 0, each = 0;
  for (const std::int64_t batch : {1, 8, 64, 200}) {
    const ServingEstimate s = *estimated(served({{"batch", batch}})).serving;
    EXPECT_GT(s.tokens_per_second, in_all);
    EXPECT_GT(s.token_seconds, each);
    in_all = s.tokens_per_second;
    each = s.token_seconds;
  }
}

// A small network's passes are done before its engine's host has seen to all sequences.
TEST(Serving, ManySequencesWaitForTheHost) {
  const auto token = [](std::int64_t batch, bool graphs) {
    const Json engine = {{"cuda_graphs", graphs}};
    return estimated(served({{"batch", batch}, {"prompt_length", 128}, {"engine", engine}},
                            "1xH100-SXM5-80GB", {{"model", "qwen2.5-0.5b"}}))
        .serving->quiet_token_seconds;
  };
  EXPECT_NEAR(token(256, true), 256 * kVllm.host.sequence_seconds, 1e-9);
  EXPECT_LT(token(1, true), 3e-3);
  EXPECT_NEAR(token(1, false), kVllm.host.pass_seconds + 24 * kVllm.host.eager_seconds, 1e-9);
}

TEST(Serving, EnginesShareTheGpus) {
  const Json two = {{"engine", Json{{"tensor_parallel", 2}}}};
  const Estimate apart = estimated(served({}, "4xH100-SXM5-80GB"));
  const Estimate joined = estimated(served(two, "4xH100-SXM5-80GB"));
  EXPECT_EQ(apart.serving->replicas, 4);
  EXPECT_EQ(joined.serving->replicas, 2);
  EXPECT_EQ(joined.serving->memory.block_bytes, apart.serving->memory.block_bytes / 2);
  EXPECT_GT(joined.serving->pass.exchanges, 0);
  EXPECT_LT(joined.serving->first_token_seconds, apart.serving->first_token_seconds);
}

// Its prompt is a pass of its own, and costs what it costs an idle engine: it does not hide beside
// weights that passes read anyway.
// Qwen2.5 1.5B has two heads of keys: each of four GPUs has one, with its cache and projections.
/// Granite's layers are Llama's; GPT-OSS's experts are summed once behind each layer, so that its
/// exchanges are two of each layer, as those of a dense network of its width.
TEST(Serving, DividesFamiliesThatTransformersHasNoPlanOf) {
  for (const char* name : {"granite-3.1-2b", "gpt-oss-20b", "opt-13b", "bloom-7b1"}) {
    const auto of = [&](int degree) {
      const Json engine{{"tensor_parallel", degree}, {"max_num_seqs", 16}};
      return estimated(served({{"engine", engine}}, "4xH100-SXM5-80GB", {{"model", name}}));
    };
    const Estimate one = of(1), four = of(4);
    EXPECT_TRUE(four.verdict.fits) << name;
    EXPECT_LT(four.serving->memory.weights, one.serving->memory.weights * 3 / 10) << name;
    EXPECT_LT(four.serving->pass.products, one.serving->pass.products) << name;
    EXPECT_GT(four.serving->pass.exchanges, 0) << name;
    EXPECT_LT(four.serving->pass.exchanges, four.serving->pass.seconds() / 2) << name;
  }
}

TEST(Serving, FewerHeadsOfKeysThanGpusAreRepeated) {
  const auto over = [](std::int64_t degree) {
    const Json engine = {{"engine", Json{{"tensor_parallel", degree}}}};
    return *estimated(served(engine, "4xH100-SXM5-80GB", {{"model", "qwen2.5-1.5b"}})).serving;
  };
  const ServingEstimate one = over(1), two = over(2), four = over(4);
  EXPECT_EQ(two.memory.block_bytes, one.memory.block_bytes / 2);
  EXPECT_EQ(four.memory.block_bytes, two.memory.block_bytes);
  // 28 layers, keys and values of 2 × 128 of 1,536 in 2 bytes: halves, where quarters would be.
  constexpr std::int64_t kKeysAndValues = std::int64_t{28} * 2 * 256 * 1536 * 2;
  constexpr std::int64_t kPositions = std::int64_t{131072} * 128 * 2;  // each has all of them
  EXPECT_NEAR(static_cast<double>(four.memory.weights - kPositions),
              static_cast<double>(two.memory.weights - kPositions) / 2 + kKeysAndValues / 4.0,
              1 << 20);
  EXPECT_GT(four.tokens_per_second, 0);
}

TEST(Serving, OneSequenceTakesItsPromptAndThenItsTokens) {
  const ServingEstimate s =
      *estimated(served({{"batch", 1}, {"prompt_length", 6000}, {"new_tokens", 2000}})).serving;
  const double all = s.token_seconds * 2000;
  EXPECT_NEAR(all, s.first_token_seconds + 1999 * s.quiet_token_seconds, 0.001 * all);
}

// A pass has room for so many tokens: prompts that need more decide how many sequences decode.
/// No job says so, but a search that shortens prompts may come there.
TEST(Serving, PromptsThatAreSharedWholeTakeNoPass) {
  Job job = served({{"shared_prefix", 1024}});
  job.plan.workload.sequence_length = 1024;
  const Estimate e = estimated(job);
  EXPECT_EQ(e.serving->prompt_tokens, 0);
  EXPECT_GT(e.serving->tokens_per_second, 0);  // a number
  EXPECT_DOUBLE_EQ(e.serving->token_seconds, e.serving->quiet_token_seconds);
}

// vLLM's profile: of 8,192 rows the residual stream, five more of it and what the norm makes of it
// (4,096 wide each), gate and up together (28,672), and what the next product takes (14,336), all
// in 2 bytes; or the stream once and the logits of 1,024 sequences in 2 bytes and in 4. Beside it a
// workspace, and what each sequence that may run has of its own.
TEST(Serving, ProfilesFusedKernelsOfItsShare) {
  const auto profiled = [](std::int64_t degree, std::int64_t sequences = 256) {
    const Json engine = {
        {"engine", Json{{"tensor_parallel", degree}, {"max_num_seqs", sequences}}}};
    const EngineMemory m = estimated(served(engine, "8xH100-SXM5-80GB")).serving->memory;
    return m.activations - m.outside - (std::int64_t{32} << 20) -
           sequences * (128256 / 8 * 33 + (40 << 10));
  };
  EXPECT_EQ(profiled(1), std::int64_t{8192} * 2 * (7 * 4096 + 28672 + 14336));
  EXPECT_EQ(profiled(2), std::int64_t{8192} * 2 * (7 * 4096 + 14336 + 7168));
  EXPECT_EQ(profiled(8, 1024),
            std::int64_t{8192} * 2 * 4096 + std::int64_t{1024} * 128256 * (2 + 4));
}

// Of D sequences that decode, and D / 64 prompts of 512 tokens that begin, 1,024 tokens are a
// pass's all: the others wait for their prompts, and are no reason to take fewer of these.
TEST(Serving, MoreSequencesThanPromptsComeInForSlowNothing) {
  const auto of = [](std::int64_t sequences) {
    const Json engine = {{"max_num_batched_tokens", 1024}, {"max_num_seqs", sequences}};
    return *estimated(served({{"prompt_length", 512}, {"new_tokens", 64}, {"engine", engine}}))
                .serving;
  };
  const ServingEstimate few = of(256), all = of(1024);
  EXPECT_DOUBLE_EQ(all.prompt_tokens, 1024.0 / (1 + 512.0 / 64) * 512 / 64);
  EXPECT_DOUBLE_EQ(all.tokens_per_second, few.tokens_per_second);
}

// A batch that is there from the start: its prompts, then a pass for each token with all of them.
TEST(Serving, RequestsThatWaitAreAnsweredRoundByRound) {
  const auto waiting = [](std::int64_t requests) {
    const Json workload = {{"batch", 64}, {"engine", Json{{"requests", requests}}}};
    return *estimated(served(workload)).serving;
  };
  const ServingEstimate coming = waiting(0), once = waiting(64), twice = waiting(128),
                        more = waiting(160), many = waiting(64000);
  EXPECT_EQ(coming.queue_seconds, 0);
  EXPECT_DOUBLE_EQ(once.tokens_per_second, 64 * 256 / once.queue_seconds);
  // What comes last and first finds the engine half empty; the last round is all but as long.
  EXPECT_GT(once.queue_seconds, 256 * coming.token_seconds);
  EXPECT_LT(more.tokens_per_second, twice.tokens_per_second);
  EXPECT_GT(many.tokens_per_second, twice.tokens_per_second);
  EXPECT_NEAR(many.tokens_per_second, coming.tokens_per_second, 0.10 * coming.tokens_per_second);
}

// Sixteen passes' worth of prompts, and 256 tokens: no part of either is left out.
TEST(Serving, ABatchTakesItsPromptsAndThenItsTokens) {
  const ServingEstimate s =
      *estimated(served({{"batch", 64}, {"engine", Json{{"requests", 64}}}})).serving;
  const double prompts = 64 * s.first_token_seconds;
  EXPECT_NEAR(s.queue_seconds, prompts + 256 * s.quiet_token_seconds, 0.08 * s.queue_seconds);
}

TEST(Serving, ReadingKeysOnceForEachHeadOfQueriesTakesLonger) {
  const auto quiet = [](bool grouped) {
    const Json workload = {{"batch", 64}, {"engine", Json{{"grouped_reads", grouped}}}};
    return *estimated(served(workload)).serving;
  };
  EXPECT_GT(quiet(false).quiet_token_seconds, 1.2 * quiet(true).quiet_token_seconds);
  EXPECT_EQ(quiet(false).room, quiet(true).room);
}

// NCCL's ring of eight takes fourteen steps for an all-reduce, the engine's own kernel none.
TEST(Serving, LargeExchangesAreTheLibrarys) {
  const auto exchanges = [](std::int64_t batch) {
    const Json workload = {{"batch", batch}, {"engine", Json{{"tensor_parallel", 8}}}};
    return estimated(served(workload, "8xA100-SXM4-80GB")).serving->pass.exchanges;
  };
  // 8,192 bytes of a row: 8 MiB are 1,024 rows, of which some are prompts.
  EXPECT_LT(exchanges(64) / 64, exchanges(1));
  EXPECT_GT(exchanges(256), exchanges(64));
}

// kvCacheManager.cpp, calculateMaxNumBlocks: 0.9 of what weights and a pass leave free.
TEST(Serving, TensorRtLlmsShareIsOfWhatIsFree) {
  const Job job = served({{"engine", Json{{"engine", "tensorrt-llm"}}}});
  const ServingEstimate s = *estimated(job).serving;
  const std::int64_t before = s.memory.weights + s.memory.activations;
  const std::int64_t usable = job.plan.cluster.gpu.usable.count();
  EXPECT_EQ(s.memory.budget - before,
            static_cast<std::int64_t>(std::ceil(0.9 * static_cast<double>(usable - before))));
  EXPECT_EQ(s.memory.block_bytes, 32 * kTokenBytes);
  EXPECT_EQ(job.plan.workload.generation.engine->sequences, 2048);
}

// Without CUDA graphs each of a ring's fourteen steps takes longer.
TEST(Serving, GraphsShortenExchanges) {
  const auto exchanges = [](const char* engine) {
    const Json of = {{"engine", engine}, {"tensor_parallel", 8}};
    return estimated(served({{"batch", 8}, {"engine", of}}, "8xH100-SXM5-80GB"))
        .serving->pass.exchanges;
  };
  // Two all-reduces a layer, and the logits once around.
  EXPECT_NEAR(exchanges("tensorrt-llm-0.14") - exchanges("tensorrt-llm"),
              (32 * 2 * 14 + 7) * 13.3e-6, 1e-4);
}

// Four cards are at a socket: a ring of eight crosses the link between two, of 16 GB/s, where a
// card's own reaches 24.6.
TEST(Serving, RingsOverPcieCrossSockets) {
  const auto exchanges = [](std::int64_t degree) {
    const Json workload = {{"prompt_length", 4096}, {"engine", Json{{"tensor_parallel", degree}}}};
    return estimated(served(workload, "8xL40S-48GB")).serving->first_token_seconds;
  };
  EXPECT_GT(exchanges(8), exchanges(4));
}

// An A100 PCIe has 300 of the 400 W with which the same chip holds its clock.
TEST(Serving, CardsWithLessPowerMultiplyMoreSlowly) {
  const auto products = [](const char* gpu) {
    return estimated(served({{"prompt_length", 4096}, {"batch", 64}}, gpu)).serving->pass.products;
  };
  EXPECT_GT(products("1xA100-PCIe-80GB"), 1.1 * products("1xA100-SXM4-80GB"));
  EXPECT_LT(products("1xA100-PCIe-80GB"), 1.35 * products("1xA100-SXM4-80GB"));
}

// The kernel for experts of vLLM in 2025 reaches less of a GPU's rate than TensorRT-LLM's, and than
// today's.
TEST(Serving, KernelsForExpertsAreTheEngines) {
  const auto first = [](const char* engine) {
    const Json workload = {{"prompt_length", 8192},
                           {"engine", Json{{"engine", engine}, {"tensor_parallel", 8}}}};
    return estimated(served(workload, "8xH100-SXM5-80GB", {{"model", "mixtral-8x7b-v0.1"}}))
        .serving->first_token_seconds;
  };
  EXPECT_GT(first("vllm-0.11"), 1.1 * first("tensorrt-llm"));
  EXPECT_GT(first("vllm-0.11"), 1.1 * first("vllm"));
}

// Before 0.14 vLLM's host works behind each pass unless it is asked to schedule ahead, 19 us a
// sequence; its V0 engine once in so many passes.
TEST(Serving, AHostThatWorksInTurnsTakesTimeOfEachSequence) {
  const auto host = [](Json engine) {
    engine["engine"] = "vllm-0.11";
    const Estimate e = estimated(served({{"batch", 100}, {"engine", std::move(engine)}}));
    return e.serving->pass.host;
  };
  EXPECT_NEAR(host(Json::object()), 1.3e-3 + 100 * 19e-6, 1e-9);
  EXPECT_NEAR(host({{"num_scheduler_steps", 8}}), (1.3e-3 + 100 * 19e-6) / 8, 1e-9);
  EXPECT_NEAR(host({{"async_scheduling", true}}), 0.5e-3, 1e-9);
}

// gpt-oss-120b's experts: 128 in 36 layers, of 2,880 inputs, which kernels fill up to 3,072, for
// twice 2,880 outputs and back, in 17 of 32 bytes; all else is in 16 bits.
TEST(Serving, Mxfp4StoresExpertsAlone) {
  const auto weights = [](const Json& workload) {
    return estimated(served(workload, "8xH100-SXM5-80GB", {{"model", "gpt-oss-120b"}}))
        .serving->memory.weights;
  };
  const double elements = 36.0 * 128 * 3 * 2880 * 2880;
  EXPECT_NEAR(static_cast<double>(weights({{"quantization", "none"}}) -
                                  weights({{"quantization", "mxfp4"}})),
              elements * (2 - 17.0 / 32 * 3072 / 2880), 1e-3 * elements);
}

// Four products of a layer have a kernel more each, but under TensorRT-LLM.
TEST(Serving, OperandsInEightBitsHaveAKernelOfTheirOwn) {
  const auto more = [](const char* engine) {
    const auto between = [&](const char* format) {
      const Json workload{
          {"batch", 1}, {"quantization", format}, {"engine", Json{{"engine", engine}}}};
      return estimated(served(workload)).serving->pass.between;
    };
    return between("fp8") - between("none");
  };
  EXPECT_GT(more("vllm"), 32 * 4 * 1e-6);
  EXPECT_NEAR(more("tensorrt-llm"), 0, 1e-9);
}

TEST(Serving, WeightsCanBeQuantizedInPart) {
  const auto of = [](double share) {
    const Json engine{{"quantized_share", share}};
    return *estimated(served({{"quantization", "fp8"}, {"batch", 64}, {"engine", engine}})).serving;
  };
  const ServingEstimate all = of(1), half = of(0.5), none = of(0);
  const ServingEstimate plain = *estimated(served({{"batch", 64}})).serving;
  EXPECT_EQ(none.memory.weights, plain.memory.weights);
  EXPECT_NEAR(static_cast<double>(half.memory.weights),
              static_cast<double>(all.memory.weights + none.memory.weights) / 2, 1e6);
  EXPECT_NEAR(half.pass.products, (all.pass.products + none.pass.products) / 2, 1e-6);
}

TEST(Serving, LongPromptsAndShortAnswersAreLimitedByPrompts) {
  const ServingEstimate s =
      *estimated(served({{"prompt_length", 8000}, {"new_tokens", 16}})).serving;
  EXPECT_DOUBLE_EQ(s.prompt_tokens, 8192 / (1 + 16.0 / 8000));  // and the rest decode
  EXPECT_NEAR(s.tokens_per_second * s.token_seconds, s.prompt_tokens / 8000 * 16, 1e-9);
}

}  // namespace
}  // namespace shardplan::serving_test
