// A head that is fused with its loss, and adapters of the head that it passes over.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::fused_head_test {
namespace {

Job job_of(const char* target, const char* loss) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(
      Json{{"model", "qwen2.5-0.5b"},
           {"cluster", "1xH100"},
           {"precision", "bf16-pure"},
           {"loss", loss},
           {"workload",
            {{"method", "lora"}, {"lora", {{"rank", 8}, {"targets", Json::array({target})}}}}}},
      "job.json", {.hardware = &hardware});
}

std::int64_t allocated(const Job& job) {
  static const Calibration calibration = load_calibration();
  return estimate(job.model, job.plan, calibration).allocated.point;
}

TEST(FusedHead, IsEstimatedWithAllLogitsWhereTheHeadHasAdapters) {
  const Job fused = job_of("lm_head", "fused_linear"), plain = job_of("lm_head", "cross_entropy");
  EXPECT_EQ(allocated(fused), allocated(plain));
  const auto warned = [](const Job& job) {
    return std::ranges::any_of(job.diagnostics, [](const Diagnostic& d) {
      return to_string(d).find("adapters of lm_head") != std::string::npos;
    });
  };
  EXPECT_TRUE(warned(fused));
  EXPECT_FALSE(warned(plain));
  EXPECT_LT(allocated(job_of("q_proj", "fused_linear")),
            allocated(job_of("q_proj", "cross_entropy")));
}

}  // namespace
}  // namespace shardplan::fused_head_test
