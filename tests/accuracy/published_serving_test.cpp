// Throughput of serving engines as published (data/published/serving.json), against what the
// planner predicts. No constant was fitted to it. docs/evidence/measurements.md has the table.
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

/// The largest mean error of each family.
const std::map<std::string, double>& limits() {
  static const std::map<std::string, double> all{
      {"TensorRT-LLM, requests in a queue, fp8", 0.15},
      {"TensorRT-LLM, requests in a queue, 16 bits", 0.15},
      {"TensorRT-LLM, static batches, fp8", 0.23},
      {"TensorRT-LLM, static batches, fp8, experts", 0.78},
      {"TensorRT-LLM, static batches, 16 bits", 0.12},
      {"TensorRT-LLM, static batches, 16 bits, experts", 0.23},
      {"vLLM, requests in a queue, 16 bits", 0.62},
      {"vLLM, few at once, 16 bits", 0.11},
      {"vLLM, requests kept at once, 16 bits", 0.08},
      {"vLLM, requests kept at once, fp8", 0.18},
      {"vLLM, static batches, 16 bits", 0.15},
      {"vLLM, static batches, 16 bits, experts", 0.08},
      {"vLLM on MI300X, requests in a queue, fp8", 0.92},
      {"vLLM on MI300X, static batches, fp8", 0.32},
      {"SGLang, requests in a queue, fp8", 0.98},
      {"SGLang, one sequence, 16 bits", 0.15},
      {"SGLang, one sequence, fp8", 0.10},
      {"vLLM, one sequence, 16 bits", 0.34},
      {"vLLM, one sequence, 4 bits", 0.43},
  };
  return all;
}

TEST(PublishedServing, ThroughputByFamily) {
  std::map<std::string, Errors> families;
  std::size_t without_room = 0;
  Errors all;
  for (const Row& row : rows()) {
    if (row.refused) continue;
    const Estimate e = estimated(row);
    if (e.serving->tokens_per_second <= 0) {
      ++without_room;  // judged below
      continue;
    }
    const double error = e.serving->tokens_per_second / row.tokens_per_second - 1;
    RecordProperty(row.words(), std::to_string(error));
    families[row.family].add(error);
    all.add(error);
  }
  EXPECT_GE(all.rows, 345U);
  EXPECT_LE(without_room, 6U);
  for (const auto& [name, errors] : families) {
    RecordProperty(name, errors.words());
    EXPECT_LE(errors.mean(), limits().at(name)) << name << ": " << errors.words();
  }
  RecordProperty("all", all.words());
  EXPECT_LE(all.mean(), 0.28) << all.words();
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
  EXPECT_LE(models["llama-3.1-405b"].mean(), 0.20);
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
  EXPECT_GE(count, 230U);
  EXPECT_LE(wrong, 1U);  // GPT-J on an L40S: 64 of 64 have room, but not the process beside them
}

// Kinds that are not modelled are refused, not guessed.
TEST(PublishedServing, RefusesWhatItDoesNotModel) {
  std::size_t count = 0;
  for (const Row& row : rows()) {
    if (!row.refused) continue;
    ++count;
    EXPECT_ANY_THROW(estimated(row)) << row.words();
  }
  EXPECT_EQ(count, 24U);
}

}  // namespace
}  // namespace shardplan::published_serving_test
