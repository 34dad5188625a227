// Steps of pipeline stages one after the other: what a step lets go of the one before it goes once.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "simulator/reserved.h"
#include "support/program_testing.h"

namespace shardplan::stage_steps_test {
namespace {

Program program_of(const std::string& parallel, bool overlaps) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "qwen2.5-0.5b", "cluster": "4xH100-80GB",
      "framework": "megatron",
      "workload": {"micro_batch": 1, "sequence_length": 128, "gradient_accumulation": 8}})",
                         "job");
  json["parallel"] = parse_json(parallel, "parallel");
  json["framework"] = {{"name", "megatron"}, {"overlap_grad_reduce", overlaps}};
  const Job job = load_job(json, "job", {.hardware = &hardware, .directory = ""});
  const RankModel rank(job.model, job.plan);
  return lower(rank.model(), job.plan, rank.run(), 0);
}

/// Warm-up passes repeat; without overlap nothing else had kept the first one apart.
TEST(StageSteps, LetGoWhatWasReceivedOnceHoweverManyPassesWarmUp) {
  for (const char* parallel : {R"({"pipeline": 4})", R"({"pipeline": 2, "virtual_pipeline": 2})"})
    for (const bool overlaps : {true, false}) {
      const Program program = program_of(parallel, overlaps);
      EXPECT_GT(simulate_reserved(program).reserved, 0) << parallel;  // asserts within
      const Played played = play(program);
      for (const std::int64_t least : played.least) EXPECT_GE(least, 0) << parallel;
      EXPECT_EQ(played.at_end, played.profile.at_start) << parallel;
    }
}

}  // namespace
}  // namespace shardplan::stage_steps_test
