// A changed plan written back into its job: the job must then mean that plan.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "job/cluster_json.h"
#include "job/rewrite.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/compare.h"
#include "questions/fixes.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

class JobRewrite : public testing::Test {
 protected:
  Job loaded(const Json& job, const std::string& directory) const {
    return load_job(job, "job.json", {&hardware_, directory});
  }
  Estimate estimated(const Job& job) const { return estimate(job.model, job.plan, calibration_); }

  void expect_rewritten(const Json& json, const std::string& directory, const Plan& before,
                        const Plan& after, const Estimate& expected,
                        const std::string& what) const {
    const Json written = rewritten(json, directory, before, after);
    try {
      const Estimate e = estimated(loaded(written, directory));
      EXPECT_EQ(e.device.point, expected.device.point) << what << "\n" << written.dump(2);
      EXPECT_EQ(e.host_per_node.total(), expected.host_per_node.total()) << what;
      EXPECT_DOUBLE_EQ(e.time.step_seconds, expected.time.step_seconds) << what;
    } catch (const InputError& e) {
      ADD_FAILURE() << what << ": " << e.what() << "\n" << written.dump(2);
    }
  }

  HardwareCatalog hardware_ = load_hardware_catalog();
  Calibration calibration_ = load_calibration();
};

TEST_F(JobRewrite, EveryFixOfEveryExampleCanBeWrittenDown) {
  int fixes = 0;
  for (const auto& entry : fs::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/jobs")) {
    const Json json = read_json_file(entry.path().string());
    const std::string directory = entry.path().parent_path().string();
    const Job job = loaded(json, directory);
    for (const Fix& fix : find_fixes(job.model, job.plan, estimated(job), calibration_)) {
      Plan after = job.plan;
      for (const Change& change : fix.changes) change.apply(after);
      expect_rewritten(json, directory, job.plan, after, fix.after,
                       entry.path().filename().string() + ": " + fix.changes.front().what);
      ++fixes;
    }
  }
  EXPECT_GT(fixes, 20);
}

TEST_F(JobRewrite, EveryStageAndOffloadCanBeWrittenDown) {
  for (const auto* text :
       {R"({"model": "gpt2", "cluster": "4x40GB"})",
        R"({"model": "gpt2", "cluster": "4x40GB", "framework": "ddp"})",
        R"({"model": "gpt2", "cluster": "4x40GB", "framework": {"name": "deepspeed", "ds_config":
            {"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}}})"}) {
    const Json json = Json::parse(text);
    const Job job = loaded(json, "");
    for (const Alternative& a : compare_stages(job.model, job.plan, calibration_))
      expect_rewritten(json, "", job.plan, a.plan, a.estimate, std::string(text) + a.name);
  }
}

TEST_F(JobRewrite, WhatDoesNotDifferStaysAsItWasWritten) {
  const Json json = Json::parse(R"({"model": "gpt2", "cluster": "H100", "comment": "mine"})");
  const Job job = loaded(json, "");
  EXPECT_EQ(rewritten(json, "", job.plan, job.plan), json);
}

TEST_F(JobRewrite, MoreGpusAreWrittenIntoTheCluster) {
  for (const auto* cluster :
       {R"("4xA100-40GB")", R"({"name": "4xA100-40GB"})",
        R"({"gpu": "A100-40GB", "gpus_per_node": 4})", R"("p4d.24xlarge")", R"("4x40GB")"}) {
    const Json json = Json{{"model", "gpt2"}, {"cluster", Json::parse(cluster)}};
    const Job job = loaded(json, "");
    Plan after = job.plan;
    after.cluster.gpus_per_node = 8;
    after.cluster.nodes = 2;
    const Job written = loaded(rewritten(json, "", job.plan, after), "");
    EXPECT_EQ(written.plan.cluster.world(), 16) << cluster;
    EXPECT_EQ(written.plan.cluster.gpu.usable, job.plan.cluster.gpu.usable) << cluster;
    EXPECT_EQ(written.plan.cluster.host_memory, job.plan.cluster.host_memory) << cluster;
  }
}

TEST_F(JobRewrite, AClusterWrittenOutIsTheSame) {
  for (const auto* text : {"4xA100-40GB", "p4d.24xlarge", "2x8xH100", "RTX4090"}) {
    const Job job = loaded(Json{{"model", "gpt2"}, {"cluster", text}}, "");
    for (const bool own_gpu : {false, true}) {
      const Json cluster = cluster_json(job.plan.cluster, own_gpu);
      const Job again = loaded(Json{{"model", "gpt2"}, {"cluster", cluster}}, "");
      EXPECT_EQ(estimated(again).device.upper, estimated(job).device.upper) << text << cluster;
      EXPECT_EQ(estimated(again).usable_bytes, estimated(job).usable_bytes) << text << cluster;
      EXPECT_EQ(estimated(again).time.step_seconds, estimated(job).time.step_seconds)
          << text << cluster;
    }
  }
}

}  // namespace
}  // namespace shardplan
