// Steps of Hugging Face Trainer as others measured them (tests/golden/trainer_steps.json): fused
// kernels, transformers' Adafactor, autocast's fp32 copies, bitsandbytes, QLoRA.
#include <gtest/gtest.h>

#include <cmath>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::trainer_steps_test {
namespace {

struct Limits {
  const char* name;
  double allocated;  ///< share of what was measured, both ways
  double seconds;
};

void PrintTo(const Limits& l, std::ostream* out) {
  *out << l.name;
}

class TrainerSteps : public ::testing::TestWithParam<Limits> {};

TEST_P(TrainerSteps, AreAsMeasured) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Json file = read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/trainer_steps.json");
  for (const Json& record : file.at("records")) {
    if (record.at("name") != GetParam().name) continue;
    JobContext context;
    context.hardware = &hardware;
    const Job job = load_job(record.at("job"), "trainer_steps.json", context);
    const Estimate e = estimate(job.model, job.plan, load_calibration());
    const Json& m = record.at("measured");
    const double allocated = m.at("allocated_peak").get<double>();
    EXPECT_NEAR(static_cast<double>(e.allocated.point) / allocated, 1, GetParam().allocated);
    EXPECT_NEAR(e.time.step_seconds / m.at("step_s").get<double>(), 1, GetParam().seconds);
    return;
  }
  FAIL() << "no such record";
}

// BERT ran on a machine with two H200 whose host is slower than that of the other records.
INSTANTIATE_TEST_SUITE_P(Golden, TrainerSteps,
                         ::testing::Values(Limits{"hf-qwen3-4b-pure-ckpt", 0.005, 0.05},
                                           Limits{"hf-smollm2-1.7b-liger", 0.001, 0.05},
                                           Limits{"hf-qwen2.5-3b-qlora", 0.002, 0.05},
                                           Limits{"hf-llama-3.2-1b-bnb8", 0.001, 0.05},
                                           Limits{"hf-bert-large-amp", 0.003, 0.15},
                                           Limits{"n-llama-3.1-8b-liger-adafactor-ckpt", 0.001,
                                                  0.08}));

}  // namespace
}  // namespace shardplan::trainer_steps_test
