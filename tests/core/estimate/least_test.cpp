// The least of a range is sound: a run cannot get by with less than what is live at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "estimate/estimate.h"
#include "estimate/rlhf.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::least_test {
namespace {

namespace fs = std::filesystem;

/// Bytes of tensors that are live at the peak, as the breakdown lists them.
std::int64_t live(const Estimate& e) {
  std::int64_t sum = 0;
  for (const CategoryLine& line : e.breakdown)
    if (line.category != Category::fragmentation && line.category != Category::cuda_context &&
        line.category != Category::nccl)
      sum += line.at_peak;
  return sum;
}

/// With all of the GPU, and where half of what it takes, or just less than it takes, is free.
void expect_sound(Job job, const std::string& name) {
  static const Calibration calibration = load_calibration();
  const auto answer = [&] {
    return job.rlhf ? estimate_rlhf(*job.rlhf, calibration)
                    : estimate(job.model, job.plan, calibration);
  };
  const std::int64_t needed = answer().device.point;
  for (const double share : {0.0, 0.5, 0.9, 0.97, 1.0}) {
    if (share > 0) {
      const Bytes usable(static_cast<std::int64_t>(share * static_cast<double>(needed)));
      job.plan.cluster.gpu.usable = usable;
      if (job.rlhf)
        for (Role& role : job.rlhf->roles) role.plan.cluster.gpu.usable = usable;
    }
    const Estimate e = answer();
    EXPECT_GE(e.reserved.least, live(e)) << name << ", " << share;
    EXPECT_LE(e.reserved.least, e.reserved.point) << name << ", " << share;
    EXPECT_LE(e.device.least, e.device.point) << name << ", " << share;
    if (live(e) > e.usable_bytes) {
      EXPECT_EQ(e.verdict.gpu.fit, Fit::does_not_fit) << name << ", " << share;
    }
  }
}

Job loaded(const Json& json, const std::string& name, const std::string& directory = "") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(json, name, {.hardware = &hardware, .directory = directory});
}

TEST(Least, IsNotBelowWhatIsLiveInAnyJobOfConfigs) {
  int jobs = 0;
  const fs::path configs = fs::path(SHARDPLAN_SOURCE_DIR) / "configs";
  for (const auto& entry : fs::recursive_directory_iterator(configs)) {
    if (entry.path().extension() != ".json") continue;
    const Json json = read_json_file(entry.path().string());
    if (json.value("schema", "") != "shardplan.job/1") continue;
    const std::string name = entry.path().string();
    expect_sound(loaded(json, name, entry.path().parent_path().string()), name);
    ++jobs;
  }
  EXPECT_GE(jobs, 25);
}

/// Every trainer's own values, with an engine beside it that sleeps and one that does not.
TEST(Least, IsNotBelowWhatIsLiveBesideAnEngine) {
  for (const char* trainer : {"trl", "verl", "nemo_rl", "openrlhf"}) {
    for (const char* framework : {"", "deepspeed", "fsdp1", "fsdp2", "megatron"}) {
      for (const char* algorithm : {"grpo", "ppo"}) {
        for (const bool lora : {false, true}) {
          for (const int sleeps : {0, 1}) {
            Json json = parse_json(fmt::format(R"({{"model": "qwen2.5-0.5b",
                "cluster": "2xH100-80GB", "trainer": "{}",
                "workload": {{"kind": "rlhf", "algorithm": "{}", "micro_batch": 2,
                             "prompt_length": 128, "new_tokens": 128,
                             "rollout": {{"gpu_memory_utilization": 0.4, "sleep_level": {}}}}}}})",
                                               trainer, algorithm, sleeps),
                                   "least");
            if (*framework != '\0') json["framework"] = framework;
            if (lora) json["workload"]["method"] = "lora";
            Job job;
            try {
              job = loaded(json, "least");
            } catch (const std::exception&) {
              continue;  // what a trainer does not do
            }
            expect_sound(std::move(job), json.dump());
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardplan::least_test
