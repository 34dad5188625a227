// vLLM 0.25 over two and four H200 (data/measurements/serving/vllm_h200_ranks.json), and its
// all-reduces (data/measurements/rates/h200/h200-vllm-exchanges.json). The engines were predicted
// before they ran; the constants of all-reduces, and of the time between two passes, were fitted
// with both in view.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "estimate/estimate.h"
#include "estimate/serving.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "serving/exchange.h"

namespace shardplan::engine_ranks_test {
namespace {

Json read(const std::string& path) {
  return read_json_file(SHARDPLAN_SOURCE_DIR "/data/measurements/" + path);
}

const HardwareCatalog& catalog() {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  return kHardware;
}

Job job_of(const Json& row, const Json& load) {
  Json job = row.at("job");
  job["model"] =
      SHARDPLAN_SOURCE_DIR "/tests/accuracy/measure/cases/" + job.at("model").get<std::string>();
  for (const char* key : {"batch", "prompt_length", "new_tokens"})
    job["workload"][key] = load.at(key);
  job["workload"]["engine"]["requests"] = load.at("batch");
  return load_job(job, "job.json", {.hardware = &catalog()});
}

Estimate estimated(const Json& row, const Json& load) {
  const Job job = job_of(row, load);
  return estimate(job.model, job.plan, load_calibration());
}

double error(double predicted, const Json& measured) {
  return predicted / measured.get<double>() - 1;
}

struct Mean {
  double sum = 0, absolute = 0;
  int count = 0;
  void add(double error) {
    sum += error;
    absolute += std::abs(error);
    ++count;
  }
  double mean() const { return absolute / count; }
  std::string words() const {
    return std::to_string(count) + ": " + std::to_string(mean()) + ", bias " +
           std::to_string(sum / count);
  }
};

TEST(EngineRanks, HoldWhatTheyHeld) {
  const Json rows = read("serving/vllm_h200_ranks.json").at("rows");
  ASSERT_EQ(rows.size(), 5U);
  for (const Json& row : rows) {
    const Estimate e = estimated(row, row.at("loads").at(0));
    const Json& m = row.at("measured");
    const std::string name = row.at("name");
    const EngineMemory& memory = e.serving->memory;
    const double blocks = error(static_cast<double>(memory.blocks), row.at("told").at("blocks"));
    RecordProperty(name + ", blocks", std::to_string(blocks));
    EXPECT_LE(std::abs(blocks), 0.008) << name;
    EXPECT_LE(std::abs(error(static_cast<double>(memory.weights), m.at("weights"))), 0.004) << name;
    const double before = m.at("used_before").get<double>();
    for (const Json& used : m.at("used_after_loads_of_each")) {
      const double held = static_cast<double>(e.device.point) / (used.get<double>() - before) - 1;
      RecordProperty(name + ", held", std::to_string(held));
      EXPECT_LE(std::abs(held), 0.005) << name;
    }
  }
}

TEST(EngineRanks, AnswerAsFast) {
  std::map<bool, std::pair<Mean, Mean>> by_experts;  // tokens, throughput
  const Json rows = read("serving/vllm_h200_ranks.json").at("rows");
  for (const Json& row : rows)
    for (const Json& load : row.at("loads")) {
      const Estimate e = estimated(row, load);
      const Json& m = load.at("measured");
      const std::string name = load.at("name");
      const bool experts = name.find("qwen3-30b") != std::string::npos;
      auto& [tokens, rates] = by_experts[experts];
      const double token = error(e.serving->quiet_token_seconds, m.at("decode_seconds"));
      const double rate = e.serving->tokens_per_second * m.at("seconds").get<double>() /
                              m.at("tokens").get<double>() -
                          1;
      RecordProperty(name, "a token " + std::to_string(token) + ", all " + std::to_string(rate));
      tokens.add(token);
      rates.add(rate);
    }
  for (const auto& [experts, means] : by_experts) {
    RecordProperty(experts ? "experts: a token" : "dense: a token", means.first.words());
    RecordProperty(experts ? "experts: all" : "dense: all", means.second.words());
  }
  EXPECT_EQ(by_experts[false].first.count, 9);
  EXPECT_EQ(by_experts[true].first.count, 8);
  EXPECT_LE(by_experts[false].first.mean(), 0.09);
  EXPECT_LE(by_experts[false].second.mean(), 0.05);
  EXPECT_LE(by_experts[true].first.mean(), 0.065);
  EXPECT_LE(by_experts[true].second.mean(), 0.12);
}

// One all-reduce of the engine's own kernel, and of the library where the engine asks it.
TEST(EngineRanks, ExchangeAsFast) {
  const Json rows = read("rates/h200/h200-vllm-exchanges.json").at("rates");
  const Json engine = read("serving/vllm_h200_ranks.json").at("rows").at(0);
  const Job job = job_of(engine, engine.at("loads").at(0));
  const LinkRates links = load_calibration().time.links;
  std::map<std::string, Mean> errors;
  for (const Json& row : rows) {
    const std::string by = row.at("by");
    const auto bytes = row.at("bytes").get<std::int64_t>();
    if ((by == "own") != (bytes <= kVllm25.own_exchange.most_bytes)) continue;
    Cluster cluster = job.plan.cluster;
    cluster.gpus_per_node = row.at("gpus").get<std::int64_t>();
    Event event;
    event.kind = Event::Kind::collective;
    event.collective = Collective::all_reduce;
    event.bytes = bytes;
    event.count = 1;
    const GroupShape group{row.at("gpus").get<std::int64_t>(), 1};
    const double seconds = engine_exchange_seconds(event, group, cluster, links, kVllm25);
    const double off = error(seconds, row.at("seconds"));
    RecordProperty(by + " " + std::to_string(group.ranks) + " " + std::to_string(bytes),
                   std::to_string(off));
    errors[by].add(off);
  }
  for (const auto& [by, mean] : errors) RecordProperty(by, mean.words());
  EXPECT_EQ(errors["own"].count, 22);
  EXPECT_EQ(errors["library"].count, 6);
  EXPECT_LE(errors["own"].mean(), 0.07);
  EXPECT_LE(errors["library"].mean(), 0.10);
}

}  // namespace
}  // namespace shardplan::engine_ranks_test
