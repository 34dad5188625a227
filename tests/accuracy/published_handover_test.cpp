// Weights that trainers hand over to engines on GPUs of their own (data/published/
// weight_handover.json).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>

#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::published_handover_test {
namespace {

/// Under Megatron-LM with eight ranks to the experts: the page says no degrees.
double seconds_of(const Json& row) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  const auto trainer = row.at("trainer_gpus").get<int>();
  const Json job{{"model", row.at("model")},
                 {"cluster", fmt::format("{}x8x{}", trainer / 8, row.at("gpu").get<std::string>())},
                 {"framework", "megatron"},
                 {"precision", "bf16-master"},
                 {"checkpointing", "full"},
                 {"parallel", {{"expert", 8}}},
                 {"workload",
                  {{"kind", "rlhf"},
                   {"algorithm", "grpo"},
                   {"prompt_length", 512},
                   {"new_tokens", 512},
                   {"reference", "none"},
                   {"rollout",
                    {{"placement", "separate"},
                     {"gpus", row.at("engine_gpus")},
                     {"tensor_parallel", 8},
                     {"weight_bucket", std::int64_t{4} << 30}}}}}};
  const Rlhf rlhf = *load_job(job, "job.json", {.hardware = &hardware, .directory = ""}).rlhf;
  return estimate_rlhf(rlhf, calibration).time.groups.value().handover_seconds;
}

// An upper estimate: the loader was timed with single tensors, and takes most of it.
TEST(PublishedHandover, TakesNoLessThanPublishedAndNoTwiceAsLong) {
  const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/weight_handover.json");
  for (const Json& row : table.at("rows")) {
    const double ratio = seconds_of(row) / row.at("seconds").get<double>();
    const auto model = row.at("model").get<std::string>();
    std::cout << fmt::format("{} {:.2f}\n", model, ratio);
    EXPECT_GT(ratio, 0.9) << model;
    EXPECT_LT(ratio, 2) << model;
  }
}

}  // namespace
}  // namespace shardplan::published_handover_test
