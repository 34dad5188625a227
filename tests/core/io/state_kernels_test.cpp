// What a job says of the kernels that run layers with a state.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::state_kernels_io_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Job load(const std::string& model, const std::string& kernels) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job = Json::parse(R"({"cluster": "1xA100-80GB", "framework": "single"})");
  job["model"] = model;
  job["state_kernels"] = kernels;
  return load_job(job, "job.json", {&hardware, ""});
}

TEST(StateKernelsOfJobs, AreReadByTheNamesOfLibraries) {
  for (const char* name : {"fused", "mamba_ssm", "fla"})
    EXPECT_EQ(load("mamba-130m", name).plan.state_kernels, StateKernels::fused) << name;
  EXPECT_EQ(load("mamba-130m", "torch").plan.state_kernels, StateKernels::torch);
  EXPECT_THAT(load("mamba-130m", "fused").assumed,
              Contains(HasSubstr("mamba_ssm and causal_conv1d, after their source")));
}

TEST(StateKernelsOfJobs, AreRefusedWhereNoLayerHasAState) {
  EXPECT_THAT(error_text([] { load("gpt2", "fused"); }),
              HasSubstr("no layer of a network of type"));
  EXPECT_NO_THROW(load("gpt2", "torch"));
}

TEST(StateKernelsOfJobs, AreNotDescribedInGenerationNorDivided) {
  const auto error = [](const char* change) {
    static const HardwareCatalog hardware = load_hardware_catalog();
    Json job = Json::parse(R"({"model": "mamba-130m", "cluster": "2xA100-80GB",
                               "framework": "ddp"})");
    job.merge_patch(Json::parse(change));
    return error_text([&] { load_job(job, "job.json", {&hardware, ""}); });
  };
  EXPECT_THAT(error(R"({"framework": "single", "cluster": "1xA100-80GB",
                        "workload": {"kind": "inference"}})"),
              HasSubstr("training alone"));
  EXPECT_THAT(error(R"({"framework": "fsdp2", "parallel": {"tensor": 2}})"), HasSubstr("tensor"));
}

}  // namespace
}  // namespace shardplan::state_kernels_io_test
