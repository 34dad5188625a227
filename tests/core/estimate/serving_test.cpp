// What an engine holds and how fast it answers, from sums that can be made by hand.
#include "estimate/serving.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::serving_test {
namespace {

Job served(const Json& workload, const std::string& cluster = "1xH100-SXM5-80GB",
           const Json& more = Json::object()) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  Json job = {{"model", "llama-3.1-8b"},
              {"cluster", cluster},
              {"workload", Json{{"kind", "inference"},
                                {"prompt_length", 2048},
                                {"new_tokens", 256},
                                {"engine", Json::object()}}}};
  if (!workload.is_null()) job["workload"].update(workload, true);
  if (!more.is_null()) job.update(more);
  return load_job(job, "job.json", {.hardware = &kHardware});
}

Estimate estimated(const Job& job) {
  return estimate(job.model, job.plan, Calibration{});
}

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

TEST(Serving, WhatPromptsShareIsThereOnce) {
  const Estimate apart = estimated(served({}));
  const Estimate shared = estimated(served({{"shared_prefix", 1024}}));
  EXPECT_EQ(shared.serving->room, (apart.serving->memory.blocks - 64) / ((1024 + 256) / 16));
  EXPECT_LT(shared.serving->first_token_seconds, apart.serving->first_token_seconds);
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

TEST(Serving, LongPromptsAndShortAnswersAreLimitedByPrompts) {
  const ServingEstimate s =
      *estimated(served({{"prompt_length", 8000}, {"new_tokens", 16}})).serving;
  EXPECT_DOUBLE_EQ(s.prompt_tokens, 8192 - static_cast<double>(s.sequences));
  EXPECT_NEAR(s.tokens_per_second * s.token_seconds, s.prompt_tokens / 8000 * 16, 1e-9);
}

TEST(Serving, RefusesWhatAnEngineCannotDo) {
  const auto error = [](const Json& workload, const std::string& cluster = "4xH100-SXM5-80GB",
                        const Json& more = Json::object()) {
    return error_text([&] { served(workload, cluster, more); });
  };
  EXPECT_NE(
      error({{"engine", Json{{"tensor_parallel", 3}}}}).find("3 does not divide the 32 heads"),
      std::string::npos);
  EXPECT_NE(error({{"engine", Json{{"tensor_parallel", 8}}}}).find("8 does not divide the 4 GPUs"),
            std::string::npos);
  EXPECT_NE(error({{"engine", Json{{"max_num_batched_tokens", 128}}}}).find("max_num_seqs"),
            std::string::npos);
  EXPECT_NE(error({{"shared_prefix", 2048}}).find("are the whole prompt"), std::string::npos);
  EXPECT_NE(error({{"engine", Json{{"max_model_length", 100}}}}).find("at least 2304"),
            std::string::npos);
  EXPECT_NE(error({{"engine", Json{{"engine", "vlm"}}}}).find("vllm"), std::string::npos);
  EXPECT_NE(error({}, "1xH100-SXM5-80GB", {{"framework", "single"}}).find("an engine serves"),
            std::string::npos);
}

}  // namespace
}  // namespace shardplan::serving_test
