// vLLM 0.25 over two and four H200 (data/measurements/serving/vllm_h200_ranks.json), and its
// all-reduces (data/measurements/rates/h200/h200-vllm-exchanges.json). The engines were predicted
// before they ran; the constants of all-reduces, and of the time between two passes, were fitted
// with both in view.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "engine_rows.h"
#include "estimate/serving.h"
#include "serving/exchange.h"

namespace shardplan::engine_ranks_test {
namespace {

using engine_rows::error;
using engine_rows::estimated;
using engine_rows::job_of;
using engine_rows::Mean;

Json read(const std::string& path) {
  return read_json_file(SHARDPLAN_SOURCE_DIR "/data/measurements/" + path);
}

std::string words(const Mean& mean) {
  return std::to_string(mean.count) + ": " + std::to_string(mean.error()) + ", bias " +
         std::to_string(mean.bias());
}

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
    RecordProperty(experts ? "experts: a token" : "dense: a token", words(means.first));
    RecordProperty(experts ? "experts: all" : "dense: all", words(means.second));
  }
  EXPECT_EQ(by_experts[false].first.count, 9);
  EXPECT_EQ(by_experts[true].first.count, 8);
  EXPECT_LE(by_experts[false].first.error(), 0.09);
  EXPECT_LE(by_experts[false].second.error(), 0.05);
  EXPECT_LE(by_experts[true].first.error(), 0.065);
  EXPECT_LE(by_experts[true].second.error(), 0.12);
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
  for (const auto& [by, mean] : errors) RecordProperty(by, words(mean));
  EXPECT_EQ(errors["own"].count, 22);
  EXPECT_EQ(errors["library"].count, 6);
  EXPECT_LE(errors["own"].error(), 0.07);
  EXPECT_LE(errors["library"].error(), 0.10);
}

}  // namespace
}  // namespace shardplan::engine_ranks_test
