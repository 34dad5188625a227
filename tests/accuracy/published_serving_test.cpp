// Throughput of serving engines as published (data/published/serving.json), against what the
// planner predicts. Constants were fitted to some of its rows: the time of vLLM 0.6 between two
// passes, to six, judged by 57 rows of another source; that of 0.11, to four rows and eight times
// between tokens; the rate of experts in 4 bits, to one time between tokens; a step of TensorRT-LLM
// 0.14's exchanges, to 101, judged by the other rows of its page and by another version's 388; and
// the rate of AITER's experts, to two of MI300X, judged by two of MI325X. Rows keep what was
// predicted before they were compared. docs/evidence/measurements.md has the table.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "published_serving_jobs.h"
#include "serving/engine_pass.h"

namespace shardplan::published_serving_test {
namespace {

using published_serving::job_of;
using published_serving::Row;
using published_serving::rows;

struct Errors {
  std::size_t rows = 0;
  double sum = 0, absolute = 0;
  void add(double error) {
    ++rows;
    sum += error;
    absolute += std::abs(error);
  }
  double mean() const { return absolute / static_cast<double>(rows); }
  std::string words() const {
    return std::to_string(rows) + " rows, mean " + std::to_string(100 * mean()) + " %, bias " +
           std::to_string(100 * sum / static_cast<double>(rows));
  }
};

const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}

Estimate estimated(const Row& row) {
  static const Calibration calibration = load_calibration();
  const Job job = load_job(job_of(row), "job.json", {.hardware = &hardware()});
  return estimate(job.model, job.plan, calibration);
}

/// The row's error where its GPU is the one that its source states, TokenTimesSayWhichGpuRan.
double on_stated_gpu(Row row, double error) {
  if (row.stated_gpu.empty()) return error;
  row.gpu = row.stated_gpu;
  const double rate = estimated(row).serving->tokens_per_second;
  return rate > 0 ? rate / row.tokens_per_second - 1 : error;
}

/// The largest mean error of each family.
const std::map<std::string, double>& limits() {
  static const std::map<std::string, double> all{
      {"TensorRT-LLM, requests in a queue, fp8", 0.08},
      {"TensorRT-LLM, requests in a queue, 16 bits", 0.08},
      // Predicted before they were compared, all of one table; as predicted since.
      {"TensorRT-LLM 0.14, requests in a queue, fp8", 0.12},
      {"TensorRT-LLM 0.14, requests in a queue, 16 bits", 0.10},
      {"TensorRT-LLM 0.14, requests in a queue, fp8, experts", 0.12},
      {"TensorRT-LLM 0.14, requests in a queue, 16 bits, experts", 0.10},
      {"TensorRT-LLM 0.14, requests in a queue, fp8, over PCIe", 0.11},
      {"TensorRT-LLM 0.14, requests in a queue, 16 bits, over PCIe", 0.09},
      {"TensorRT-LLM 0.14, requests in a queue, fp8, experts, over PCIe", 0.09},
      {"TensorRT-LLM 0.14, requests in a queue, 16 bits, experts, over PCIe", 0.26},
      // Another version's table, predicted before it was read; as predicted since.
      {"TensorRT-LLM 0.15, requests in a queue, fp8", 0.09},
      {"TensorRT-LLM 0.15, requests in a queue, 16 bits", 0.08},
      {"TensorRT-LLM 0.15, requests in a queue, fp8, experts", 0.09},
      {"TensorRT-LLM 0.15, requests in a queue, 16 bits, experts", 0.07},
      {"TensorRT-LLM 0.15, requests in a queue, fp8, over PCIe", 0.07},
      {"TensorRT-LLM 0.15, requests in a queue, 16 bits, over PCIe", 0.13},
      {"TensorRT-LLM 0.15, requests in a queue, fp8, experts, over PCIe", 0.07},
      {"TensorRT-LLM 0.15, requests in a queue, 16 bits, experts, over PCIe", 0.25},
      // Attention with sinks is not modelled. As AWQ's weights, in tiles of 128 rows: 0.42.
      {"vLLM, chat requests in a queue, 4 bits, experts", 0.30},
      {"TensorRT-LLM, static batches, fp8", 0.11},
      {"TensorRT-LLM, static batches, fp8, experts", 0.50},
      {"TensorRT-LLM, static batches, 16 bits", 0.09},
      {"TensorRT-LLM, static batches, 16 bits, experts", 0.23},
      {"vLLM, requests in a queue, 16 bits", 0.22},
      {"vLLM, requests in a queue, fp8, experts", 0.05},
      {"vLLM, requests in a queue, 16 bits, experts", 0.21},
      {"vLLM, few at once, 16 bits", 0.04},
      // All-reduces as measured are shorter than was assumed: 0.08 and 0.18 before.
      {"vLLM, requests kept at once, 16 bits", 0.09},
      {"vLLM, requests kept at once, fp8", 0.18},
      {"vLLM, static batches, 16 bits", 0.05},
      {"vLLM, static batches, 16 bits, experts", 0.04},
      // Before its host took longer the more sequences run: 0.44 and 0.15.
      {"vLLM on MI300X, requests in a queue, fp8", 0.21},
      {"vLLM on MI300X, static batches, fp8", 0.10},
      {"SGLang, requests in a queue, fp8", 0.17},
      {"SGLang, one sequence, 16 bits", 0.15},
      {"SGLang, one sequence, fp8", 0.085},
      {"vLLM, one sequence, 16 bits", 0.09},
      {"vLLM, one sequence, 4 bits", 0.14},
      {"TensorRT-LLM in MLPerf, all at the start, fp8", 0.14},
      // Requests in work as the results' logs say; taken to be as many as fit: 0.31 before.
      {"TensorRT-LLM in MLPerf, requests that come, fp8", 0.16},
      // vLLM's V0 engine, as its settings say: read as 0.11's in turns 0.051, without them 0.05. A
      // kernel more for each product in fp8 takes the rest.
      {"vLLM on MI300X and MI325X in MLPerf, all at the start, fp8", 0.056},
      // As many as fit: 0.04. With those of the logs the row of MI300X is 11 % off.
      {"vLLM on MI300X and MI325X in MLPerf, requests that come, fp8", 0.065},
      {"vLLM in MLPerf, all at the start, fp8", 0.40},
      {"vLLM in MLPerf, requests that come, fp8", 0.37},  // 0.96 as full as offline
      // Of prompts as long as two of three data sets' samples say; as long as answers: 1.47 before.
      {"TensorRT-LLM in MLPerf, all at the start, fp8, experts", 0.32},
      {"TensorRT-LLM in MLPerf, requests that come, fp8, experts", 0.30},
      {"vLLM on MI300X and MI325X in MLPerf, all at the start, fp8, experts", 0.10},
      {"vLLM on MI300X and MI325X in MLPerf, requests that come, fp8, experts", 0.03},
  };
  return all;
}

TEST(PublishedServing, ThroughputByFamily) {
  std::map<std::string, Errors> families;
  std::map<std::string, std::size_t> without_room;
  Errors all, as_stated, held_out, mlperf, together;
  std::map<std::string, Errors> first, since;  // by the engine's version
  for (const Row& row : rows()) {
    if (row.refused || row.answered_since) continue;  // those are judged below
    const Estimate e = estimated(row);
    if (e.serving->tokens_per_second <= 0) {
      ++without_room[row.family];  // judged below
      continue;
    }
    const double error = e.serving->tokens_per_second / row.tokens_per_second - 1;
    RecordProperty(row.words(), std::to_string(error));
    families[row.family].add(error);
    if (row.predicted > 0) {
      const std::string version = row.family.substr(0, row.family.find(','));
      first[version].add(row.predicted / row.tokens_per_second - 1);
      since[version].add(error);
      continue;
    }
    together.add(error);
    if (row.prompts_assumed) {
      mlperf.add(error);
      continue;
    }
    all.add(error);
    if (row.held_out) held_out.add(error);
    as_stated.add(on_stated_gpu(row, error));
  }
  EXPECT_GE(all.rows, 350U);
  EXPECT_TRUE(without_room.empty());
  for (const auto& [name, errors] : families) {
    RecordProperty(name, errors.words());
    EXPECT_LE(errors.mean(), limits().at(name)) << name << ": " << errors.words();
  }
  RecordProperty("all", all.words());
  RecordProperty("all, on the GPUs that sources state", as_stated.words());
  RecordProperty("held out", held_out.words());
  RecordProperty("prompts assumed", mlperf.words());
  RecordProperty("all, prompts assumed or not", together.words());
  EXPECT_LE(all.mean(), 0.122) << all.words();
  EXPECT_LE(as_stated.mean(), 0.156) << as_stated.words();
  EXPECT_EQ(mlperf.rows, 24U);
  EXPECT_LE(mlperf.mean(), 0.18) << mlperf.words();
  for (const auto& [version, errors] : first) {
    RecordProperty(version + ", predicted first", errors.words());
    RecordProperty(version + ", as predicted since", since[version].words());
  }
  const Errors& old = first["TensorRT-LLM 0.14"];
  EXPECT_EQ(old.rows, 475U);
  EXPECT_LE(old.mean(), 0.24) << old.words();  // says the program, of every answer
  EXPECT_LE(since["TensorRT-LLM 0.14"].mean(), 0.115);
  const Errors& unseen = first["TensorRT-LLM 0.15"];
  EXPECT_EQ(unseen.rows, 388U);
  EXPECT_LE(unseen.mean(), 0.10) << unseen.words();
  EXPECT_LE(since["TensorRT-LLM 0.15"].mean(), 0.10);
  EXPECT_EQ(held_out.rows, 57U);
  EXPECT_LE(held_out.mean(), 0.11) << held_out.words();
}

// The rows that are one engine's over three sizes of a network.
TEST(PublishedServing, LlamaUnderTensorRtLlm) {
  std::map<std::string, Errors> models;
  for (const Row& row : rows())
    if (row.family == "TensorRT-LLM, requests in a queue, fp8" &&
        row.model.starts_with("llama-3.1"))
      models[row.model].add(estimated(row).serving->tokens_per_second / row.tokens_per_second - 1);
  for (const auto& [name, errors] : models) RecordProperty(name, errors.words());
  EXPECT_LE(models["llama-3.1-8b"].mean(), 0.05);
  EXPECT_LE(models["llama-3.1-70b"].mean(), 0.06);
  EXPECT_LE(models["llama-3.1-405b"].mean(), 0.13);
}

// One source states another GPU than its own times from token to token allow, whose passes without
// prompts do little but read weights and cache: they are those of `gpu`, and not of what it states.
TEST(PublishedServing, TokenTimesSayWhichGpuRan) {
  Errors own, stated;
  for (Row row : rows()) {
    if (row.token_seconds <= 0) continue;
    own.add(estimated(row).serving->quiet_token_seconds / row.token_seconds - 1);
    if (row.stated_gpu.empty()) continue;
    row.gpu = row.stated_gpu;
    stated.add(estimated(row).serving->quiet_token_seconds / row.token_seconds - 1);
  }
  RecordProperty("own", own.words());
  RecordProperty("stated", stated.words());
  EXPECT_EQ(own.rows, 15U);
  EXPECT_EQ(stated.rows, 12U);
  EXPECT_LE(own.mean(), 0.10);
  EXPECT_LE(stated.sum / 12, -0.35);
}

// Eight H100 of one page take 1.4 seconds for a pass of 8,192 tokens of GLM, in which GPUs that
// NVLink joins would need a quarter of that: theirs are joined by PCIe.
TEST(PublishedServing, FullPassesSayHowGpusAreJoined) {
  std::size_t count = 0;
  for (Row row : rows()) {
    if (row.full_pass_seconds <= 0) continue;
    ++count;
    const auto error = [&] {
      const Job job = load_job(job_of(row), "job.json", {.hardware = &hardware()});
      const ServedNetwork network(job.model, job.plan, load_calibration().time);
      const auto prompt = static_cast<double>(row.prompt);
      const auto all = static_cast<double>(job.plan.workload.generation.engine->batched_tokens);
      return network.time_of({.prompt_tokens = all, .prompt_length = prompt}).seconds() /
                 row.full_pass_seconds -
             1;
    };
    const double own = error();
    RecordProperty(row.words(), std::to_string(own));
    EXPECT_LE(std::abs(own), 0.25) << row.words();
    row.gpu = row.stated_gpu;
    EXPECT_LE(error(), -0.6) << row.words();
  }
  EXPECT_EQ(count, 1U);
}

// What an engine ran at once has room: weights, activations and the cache of all requests are no
// more than the engine may take.
TEST(PublishedServing, WhatRanFits) {
  std::size_t count = 0, wrong = 0;
  for (const Row& row : rows()) {
    if (row.refused || !row.held_at_once) continue;
    const Estimate e = estimated(row);
    ++count;
    if (e.verdict.headroom_bytes >= 0) continue;
    ++wrong;
    RecordProperty(row.words(), std::to_string(e.serving->room));
  }
  EXPECT_GE(count, 246U);
  EXPECT_EQ(wrong, 0U);
}

// Kinds that are not modelled are refused, not guessed.
TEST(PublishedServing, RefusesWhatItDoesNotModel) {
  std::size_t count = 0;
  for (const Row& row : rows()) {
    if (!row.refused) continue;
    ++count;
    EXPECT_ANY_THROW(estimated(row)) << row.words();
  }
  EXPECT_EQ(count, 17U);
}

// Over several GPUs these were refused when their rows were compared: Falcon, GLM-4.5, GPT-OSS. As
// answers first came, all as long as the mean, GLM-4.5 was up to six times too fast. One sum over
// GPUs for experts that all tokens take, which had two, made rows of 16 bits 4 and 6 points faster.
// A thousand chat requests, whose answers end by themselves: 0.41 as first predicted with the
// longest waited for, 0.23 with experts in 4 bits as others are.
TEST(PublishedServing, ChatRequests) {
  Errors chats;
  for (const Row& row : rows()) {
    if (row.longest == 0) continue;
    chats.add(estimated(row).serving->tokens_per_second / row.tokens_per_second - 1);
  }
  RecordProperty("chats", chats.words());
  EXPECT_EQ(chats.rows, 15U);
  EXPECT_LE(chats.mean(), 0.15) << chats.words();
}

TEST(PublishedServing, MissesWhatItRefusedBefore) {
  const std::map<std::string, double> most{
      {"TensorRT-LLM, static batches, 16 bits", 0.34},
      {"TensorRT-LLM, static batches, fp8", 0.46},
      {"SGLang, chat requests in a queue, 16 bits, experts", 0.13},
      {"SGLang, chat requests in a queue, fp8, experts", 0.13},
      {"vLLM, chat requests in a queue, 16 bits, experts", 0.13},
      {"vLLM, chat requests in a queue, 4 bits, experts over GPUs", 0.23},
      {"vLLM, chat requests in a queue, fp8, experts", 0.05}};
  std::map<std::string, Errors> families;
  for (const Row& row : rows())
    if (row.answered_since)
      families[row.family].add(estimated(row).serving->tokens_per_second / row.tokens_per_second -
                               1);
  ASSERT_EQ(families.size(), most.size());
  for (const auto& [family, errors] : families) {
    RecordProperty(family, errors.words());
    EXPECT_LE(errors.mean(), most.at(family)) << family << ": " << errors.words();
  }
}

}  // namespace
}  // namespace shardplan::published_serving_test
