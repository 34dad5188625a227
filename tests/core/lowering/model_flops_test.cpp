// What MFU counts: a step's own FLOPs, whoever computes some of them again.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "json/reader.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/segments.h"

namespace shardplan::model_flops_test {
namespace {

double flops_with(const std::string& checkpointing, bool compile) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const Json json = Json::parse(
      R"({"model": "llama-3.2-1b", "cluster": "1xH100", "precision": "bf16-autocast",
      "workload": {"micro_batch": 1, "sequence_length": 1024}, 
      "checkpointing": )" +
      checkpointing + R"(, "compile": )" + (compile ? R"({"scope": "block"})" : "false") + "}");
  const Job job = load_job(json, "job.json", {&kHardware, ""});
  return model_flops(run_segments(job.model, job.plan), job.plan);
}

TEST(ModelFlops, AreWithoutWhatIsComputedAgain) {
  const double own = flops_with(R"("none")", false);
  EXPECT_GT(own, 0);
  for (const char* policy :
       {R"("none")", R"("full")", R"("selective")", R"({"policy": "selective_op", "every": 2})"})
    for (const bool compile : {false, true})
      EXPECT_DOUBLE_EQ(flops_with(policy, compile), own) << policy << compile;
}

}  // namespace
}  // namespace shardplan::model_flops_test
