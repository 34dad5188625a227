// Which runs a job's bounds are taken from.
#include "estimate/margins.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "estimate/ranks.h"
#include "json/reader.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::margins_test {
namespace {

AllocatorRegime regime_under(const std::string& framework, const std::string& model,
                             const std::string& parallel) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const Json json = Json::parse(
      R"({"model": ")" + model + R"(", "cluster": "1x8xH100-SXM5-80GB", "framework": {"name": ")" +
      framework + R"("}, "workload": {"micro_batch": 1, "sequence_length": 1024,
      "gradient_accumulation": 4}, "parallel": )" +
      parallel + "}");
  const Job job = load_job(json, "job.json", {&kHardware, ""});
  return regime_of(job.plan, worst_program(job.model, job.plan));
}

TEST(Regime, IsExchangedWhereOtherRanksDecideAboutBlocks) {
  EXPECT_EQ(regime_under("megatron", "mixtral-8x7b", R"({"expert": 8})"),
            AllocatorRegime::exchanged);
  EXPECT_EQ(regime_under("megatron", "llama-3.1-8b", R"({"pipeline": 4})"),
            AllocatorRegime::exchanged);
}

TEST(Regime, IsSteadyWhereNoneDoes) {
  EXPECT_EQ(regime_under("megatron", "llama-3.1-8b", R"({"tensor": 8})"), AllocatorRegime::steady);
  EXPECT_EQ(regime_under("megatron", "mixtral-8x7b", R"({"tensor": 8})"), AllocatorRegime::steady);
  EXPECT_EQ(regime_under("fsdp2", "llama-3.1-8b", R"({"pipeline": 4})"), AllocatorRegime::steady);
}

}  // namespace
}  // namespace shardplan::margins_test
