// vLLM 0.25 itself on an H100 (data/measurements/serving/vllm_h100.json): its blocks, what the GPU
// held, and how fast it answered.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine_rows.h"
#include "estimate/rlhf.h"
#include "estimate/serving.h"
#include "serving/engine_pass.h"
#include "serving/expert_products.h"

namespace shardplan::engine_records_test {
namespace {

using engine_rows::catalog;
using engine_rows::error;
using engine_rows::estimated;
using engine_rows::job_of;
using engine_rows::Mean;

Json rows_of(const std::string& name) {
  return read_json_file(SHARDPLAN_SOURCE_DIR "/data/measurements/serving/" + name).at("rows");
}

const Json& rows() {
  static const Json kRows = rows_of("vllm_h100.json");
  return kRows;
}

/// Of a network with tied embeddings whose class makes a head first, vLLM 0.25 in sleep mode counts
/// the head that it has dropped: its cache is larger than its share, by as much.
bool counts_dropped_head(const Json& row) {
  return row.at("measured").at("beside_torch").get<std::int64_t>() < 0;
}

/// Run when the constants were there already: predicted unseen.
bool judges(const Json& row) {
  return row.value("session", 1) == 2;
}

/// Networks with experts, predicted unseen with the tiles of vLLM's kernel.
bool has_experts(const Json& row) {
  return row.value("session", 1) == 3;
}

/// Five more of them, predicted unseen with what the four had mended.
bool judges_experts(const Json& row) {
  return row.value("session", 1) == 4;
}

/// A token came sooner than the memory can read the experts that tokens go to where all are alike:
/// random weights sent them to the same few.
bool uses_few_experts(const Json& row, const Json& load) {
  const Job job = job_of(row, load);
  double hit = 0;
  for (const Segment& segment : job.model.segments) {
    const ExpertProduct asked{experts_of(segment, job.model), load.at("batch").get<double>()};
    if (asked.experts > 0) hit = experts_hit(asked) / asked.experts;
  }
  const double moved = load.at("measured").at("decode_seconds").get<double>() *
                       *job.plan.cluster.gpu.memory_bandwidth;
  return moved < hit * row.at("measured").at("weights").get<double>();
}

TEST(EngineRecords, CountsBlocks) {
  ASSERT_EQ(rows().size(), 20U);
  for (const Json& row : rows()) {
    const Estimate e = estimated(row, row.at("loads").at(0));
    const double blocks =
        error(static_cast<double>(e.serving->memory.blocks), row.at("told").at("blocks"));
    const double weights =
        error(static_cast<double>(e.serving->memory.weights), row.at("measured").at("weights"));
    const std::string name = row.at("name").get<std::string>();
    RecordProperty(name + ", blocks", std::to_string(blocks));
    RecordProperty(name + ", weights", std::to_string(weights));
    EXPECT_LE(blocks, 0.006) << name;
    EXPECT_GE(blocks, counts_dropped_head(row) ? -0.026
                      : has_experts(row)       ? -0.031  // GLM's profile is said to take more
                      : judges_experts(row)    ? -0.017  // the same
                      : judges(row)            ? -0.009
                                               : -0.004)
        << name;
    // Tensors of a few MB do not fill the allocator's segments of 20 MiB.
    EXPECT_LE(weights, 0) << name;
    EXPECT_GE(weights, -0.045) << name;
  }
}

TEST(EngineRecords, HoldsWhatTheGpuHeld) {
  for (const Json& row : rows()) {
    const Estimate e = estimated(row, row.at("loads").at(0));
    const Json& m = row.at("measured");
    const auto held = m.at("used_after_loads").get<double>() - m.at("used_before").get<double>();
    const double off = static_cast<double>(e.device.point) / held - 1;
    const std::string name = row.at("name").get<std::string>();
    RecordProperty(name, std::to_string(off));
    EXPECT_GE(off, counts_dropped_head(row) ? -0.017
                   : has_experts(row)       ? -0.003
                   : judges_experts(row)    ? -0.008
                   : judges(row)            ? -0.004
                                            : -0.002)
        << name;
    EXPECT_LE(off, judges_experts(row) ? 0.010 : 0.007) << name;
  }
}

TEST(EngineRecords, AnswersAsFast) {
  Mean tokens, all, judged_tokens, judged_all, expert_tokens, expert_all, judged_expert_tokens;
  for (const Json& row : rows())
    for (const Json& load : row.at("loads")) {
      const ServingEstimate s = *estimated(row, load).serving;
      const Json& m = load.at("measured");
      const double token = error(s.quiet_token_seconds, m.at("decode_seconds"));
      const double rate =
          s.tokens_per_second * m.at("seconds").get<double>() / m.at("tokens").get<double>() - 1;
      const double first = error(s.first_token_seconds, m.at("first_token_seconds"));
      const std::string name = load.at("name").get<std::string>();
      RecordProperty(name + ", a token", std::to_string(token));
      RecordProperty(name + ", all", std::to_string(rate));
      RecordProperty(name + ", first", std::to_string(first));
      if (has_experts(row)) {
        if (uses_few_experts(row, load)) continue;
        expert_tokens.add(token);
        expert_all.add(rate);
        continue;
      }
      if (judges_experts(row)) {
        if (!uses_few_experts(row, load)) judged_expert_tokens.add(token);
        continue;
      }
      (judges(row) ? judged_tokens : tokens).add(token);
      (judges(row) ? judged_all : all).add(rate);
    }
  EXPECT_EQ(expert_tokens.count, 13);
  RecordProperty("a token, experts", std::to_string(expert_tokens.error()));
  RecordProperty("all, experts", std::to_string(expert_all.error()));
  EXPECT_LE(expert_tokens.error(), 0.05);
  EXPECT_LE(expert_all.error(), 0.125);
  RecordProperty("a token, experts that judge", std::to_string(judged_expert_tokens.error()));
  EXPECT_LE(judged_expert_tokens.error(), 0.10);
  EXPECT_EQ(tokens.count, 13);
  EXPECT_EQ(judged_tokens.count, 5);
  RecordProperty("a token", std::to_string(tokens.error()));
  RecordProperty("all", std::to_string(all.error()));
  EXPECT_LE(tokens.error(), 0.08);
  EXPECT_LE(all.error(), 0.10);
  RecordProperty("a token, judged", std::to_string(judged_tokens.error()));
  RecordProperty("all, judged", std::to_string(judged_all.error()));
  EXPECT_LE(judged_tokens.error(), 0.17);
  EXPECT_LE(judged_all.error(), 0.14);
}

/// Of one prompt of 1,024 tokens, which no graph starts: the median where it was asked several
/// times. Mixtral's is the GPU's, whose products of experts take longer than predicted.
TEST(EngineRecords, FirstTokensOfExpertsWaitForTheHost) {
  Mean all;
  for (const Json& row : rows()) {
    if (!has_experts(row) && !judges_experts(row)) continue;
    const Json& load = row.at("loads").at(0);
    const Json& m = load.at("measured");
    std::vector<double> seconds{m.at("first_token_seconds").get<double>()};
    for (const Json& again : m.value("first_token_seconds_again", Json::array()))
      seconds.push_back(again.get<double>());
    std::sort(seconds.begin(), seconds.end());
    const double off =
        estimated(row, load).serving->first_token_seconds / seconds[seconds.size() / 2] - 1;
    const auto name = load.at("name").get<std::string>();
    RecordProperty(name, std::to_string(off));
    EXPECT_NEAR(off, 0, name.find("mixtral") == std::string::npos ? 0.11 : 0.23) << name;
    all.add(off);
  }
  EXPECT_EQ(all.count, 9);
  RecordProperty("mean", std::to_string(all.error()));
  EXPECT_LE(all.error(), 0.07);
}

/// What 0.27 would have taken as cache, of what 0.25 left: all that the driver had given, and the
/// peak of tensors above those that stayed (utils/mem_utils.py, memory_profiling).
TEST(EngineRecords, CountsWhatStaysInItsShare) {
  int judged = 0;
  for (const Json& row : rows()) {
    const Json& m = row.at("measured");
    if (!m.contains("after_profile")) continue;
    const auto bytes = [&](const char* part, const char* key) {
      return m.at(part).at(key).get<std::int64_t>();
    };
    const std::int64_t consumed =
        m.at("free_at_start").get<std::int64_t>() - bytes("after_profile", "free");
    const std::int64_t headroom = bytes("profile", "peak") - bytes("after_profile", "allocated");
    const std::int64_t left = m.at("requested").get<std::int64_t>() - consumed - headroom;
    Json later = row;
    later["job"]["workload"]["engine"]["engine"] = "vllm";
    const EngineMemory memory = estimated(later, row.at("loads").at(0)).serving->memory;
    const double off = static_cast<double>(memory.cache) / static_cast<double>(left) - 1;
    const std::string name = row.at("name").get<std::string>();
    RecordProperty(name, std::to_string(off));
    const bool experts = has_experts(row) || judges_experts(row);
    EXPECT_NEAR(off, 0, experts ? 0.043 : judges(row) ? 0.009 : 0.007) << name;
    ++judged;
  }
  EXPECT_EQ(judged, 18);
}

/// Most of the GPU that was in use after any moment, without what the measuring program's own
/// barrier opened: NCCL's communicator of the one rank that vLLM had made a group of.
double most_held(const Json& row) {
  double most = 0;
  for (const Json& moment : row.at("measured").at("moments"))
    most = std::max(most, moment.at("device").get<double>());
  return most - row.at("measured").at("meter_bytes").get<double>();
}

/// As counts_dropped_head, of an engine in a trainer's process.
bool counts_dropped_head_inside(const Json& row) {
  return row.at("measured").at("engine").at("beside_torch").get<std::int64_t>() < 0;
}

/// TRL 1.16 with the engine in its own process, asleep while it trains and awake. Memory was not in
/// view of any of them when the engine's constants were fitted; what its host takes is fitted to
/// the first and the third, and the second one judges it.
TEST(EngineRecords, SharesTheGpuWithTrl) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json records = rows_of("trl_vllm_h100.json");
  ASSERT_EQ(records.size(), 5U);
  for (const Json& row : records) {
    Json json = row.at("job");
    json["workload"]["rollout"]["engine"] = "vllm-0.25";
    const Job job = load_job(json, "job.json", {.hardware = &hardware});
    const Estimate e = estimate_rlhf(*job.rlhf, load_calibration());
    const EngineMemory engine =
        engine_memory(*job.rlhf->rollout, *job.rlhf->generator, job.rlhf->generation);
    const std::string name = row.at("name").get<std::string>();
    const auto told = [&](const char* what, double off) {
      RecordProperty(name + ", " + what, std::to_string(off));
      return off;
    };
    const double blocks = told("blocks", error(static_cast<double>(engine.blocks),
                                               row.at("measured").at("engine").at("blocks")));
    const double device = told("device", static_cast<double>(e.device.point) / most_held(row) - 1);
    const double seconds =
        told("seconds", error(e.time.step_seconds, row.at("measured").at("step_seconds")));
    EXPECT_LE(blocks, 0.011) << name;
    EXPECT_GE(blocks, counts_dropped_head_inside(row) ? -0.026 : -0.011) << name;
    EXPECT_NEAR(device, 0, 0.0176) << name;  // Qwen2.5-1.5B; the others are within 0.012
    // -9.3 % since the tiles of TRL's loss are aligned; what the host takes was fitted before.
    EXPECT_NEAR(seconds, 0, judges(row) ? 0.26 : 0.094) << name;
  }
}

}  // namespace
}  // namespace shardplan::engine_records_test
