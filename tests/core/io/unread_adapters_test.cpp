// Adapters of a module whose weight alone a class reads (Gemma 3n's AltUp): they get no gradient
// there, and a step is estimated all the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::unread_adapters_test {
namespace {

TEST(UnreadAdapters, LeaveTheStepWhole) {
  const HardwareCatalog hardware = load_hardware_catalog();
  for (const char* checkpointing : {"none", "full"}) {
    Json job = Json::parse(R"({"model": "gemma-3n-e2b", "cluster": "1xA100-80GB",
        "framework": "single", "optimizer": {"name": "sgd"}, "workload": {"method": "lora", "sequence_length": 256,
        "lora": {"targets": ["all-linear"]}}})");
    job["checkpointing"] = checkpointing;
    const Job read = load_job(job, "job.json", {&hardware, ""});
    // Of tensors alone, without what blocks have beyond them.
    const Estimate e = estimate(read.model, read.plan, load_calibration(), ReservedMemory::ratio);
    EXPECT_EQ(e.phases[static_cast<std::size_t>(Phase::step)].end, e.model_bytes) << checkpointing;
  }
}

}  // namespace
}  // namespace shardplan::unread_adapters_test
