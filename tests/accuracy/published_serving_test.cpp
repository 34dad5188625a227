// Throughput of a serving engine as its documentation prints it (data/published/serving.json),
// against what the planner predicts. No constant was fitted to it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::published_serving_test {
namespace {

struct Row {
  std::string model, gpu;
  std::int64_t tensor = 1, prompt = 0, answer = 0;
  double tokens_per_second = 0;
};

std::vector<Row> rows() {
  const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/serving.json");
  std::vector<Row> all;
  for (const Json& r : table.at("rows")) all.push_back({r[0], r[1], r[2], r[3], r[4], r[5]});
  return all;
}

/// trtllm-bench's own limits: 2,048 sequences, 8,192 tokens of a pass.
Json job_of(const Row& row) {
  const Json engine = {{"tensor_parallel", row.tensor},
                       {"gpu_memory_utilization", 0.95},
                       {"max_num_seqs", 2048},
                       {"max_num_batched_tokens", 8192}};
  return {{"model", row.model},
          {"cluster", std::to_string(row.tensor) + "x" + row.gpu},
          {"workload", Json{{"kind", "inference"},
                            {"prompt_length", row.prompt},
                            {"new_tokens", row.answer},
                            {"quantization", "fp8"},
                            {"kv_cache_dtype", "fp8"},
                            {"engine", engine}}}};
}

double predicted(const Row& row, const HardwareCatalog& hardware) {
  const Job job = load_job(job_of(row), "job.json", {.hardware = &hardware});
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  EXPECT_GT(e.serving->room, 0) << row.model << " on " << row.gpu;
  return e.serving->tokens_per_second;
}

// The steady state leaves out that the published runs fill and drain, so that they are slower: the
// larger the model, the more of its requests are under way at once.
TEST(PublishedServing, ThroughputIsWithinTwentyPercentInTheMean) {
  const HardwareCatalog hardware = load_hardware_catalog();
  std::map<std::string, std::vector<double>> errors;
  double sum = 0;
  std::size_t count = 0;
  for (const Row& row : rows()) {
    const double error = predicted(row, hardware) / row.tokens_per_second - 1;
    errors[row.model].push_back(error);
    EXPECT_LT(std::abs(error), 0.55)
        << row.model << " " << row.gpu << " " << row.prompt << "/" << row.answer << ": " << error;
    sum += std::abs(error);
    ++count;
  }
  const auto mean = [&](const std::string& model) {
    double total = 0;
    for (const double e : errors.at(model)) total += std::abs(e);
    return total / static_cast<double>(errors.at(model).size());
  };
  EXPECT_GE(count, 67U);
  EXPECT_LE(sum / static_cast<double>(count), 0.20);
  EXPECT_LE(mean("llama-3.1-8b"), 0.08);
  EXPECT_LE(mean("llama-3.1-70b"), 0.18);
  EXPECT_LE(mean("llama-3.1-405b"), 0.30);
}

}  // namespace
}  // namespace shardplan::published_serving_test
