// Which modules a job's LoRA adapts where the job says nothing, and what peft refuses.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::lora_targets_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Job load(const std::string& model, const std::string& lora, const char* framework = "single") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job = Json::parse(R"({"cluster": "1xH100-SXM-80GB", "workload": {"method": "lora"}})");
  job["model"] = model;
  job["framework"] = framework;
  job["workload"]["lora"] = Json::parse(lora);
  return load_job(job, "job.json", {&hardware, ""});
}

std::vector<std::string> targets(const std::string& model) {
  return load(model, "{}").plan.workload.lora->targets;
}

TEST(LoraTargets, ArePeftsOwnOfTheType) {
  EXPECT_THAT(targets("llama-2-7b"), ElementsAre("q_proj", "v_proj"));
  EXPECT_THAT(targets("gpt2"), ElementsAre("c_attn"));
  EXPECT_THAT(targets("phi-2"), ElementsAre("q_proj", "v_proj", "fc1", "fc2"));
  EXPECT_THAT(load("gpt2", "{}").assumed, Not(Contains(HasSubstr("lora.targets"))));
}

TEST(LoraTargets, AreAssumedWherePeftHasNone) {
  EXPECT_THAT(load("olmo-2-1124-7b", "{}").assumed,
              Contains("lora.targets: q_proj, v_proj; peft has no default for a network of type "
                       "'olmo2'"));
  EXPECT_THAT(targets("phi-4"), ElementsAre("all-linear"));  // its attention is one linear
}

/// Counts beside peft's own: tests/core/model/adapter_counts_test.cpp.
TEST(LoraTargets, OfExpertsAreTheirWeights) {
  const auto trained = [](const char* lora, const char* framework) {
    return load("mixtral-8x7b-v0.1", lora, framework).model.trainable_count();
  };
  const char* all = R"({"rank": 8, "targets": ["all-linear"]})";
  EXPECT_GT(trained(all, "single"), 10 * trained(all, "native"));
  EXPECT_GT(trained(R"({"rank": 8, "targets": ["w2"]})", "single"), 0);
  EXPECT_THAT(error_text([] { load("mixtral-8x7b-v0.1", R"({"targets": ["w1"]})"); }),
              HasSubstr("w1 without w3"));
}

TEST(LoraTargets, OfExpertsTakeNoDropoutAndNoDora) {
  const auto warned = [](const char* lora, const char* framework) {
    std::vector<std::string> keys;
    for (const Diagnostic& d : load("mixtral-8x7b-v0.1", lora, framework).diagnostics)
      if (d.key.starts_with("workload.lora.")) keys.push_back(d.key);
    return keys;
  };
  EXPECT_THAT(warned(R"({"targets": ["all-linear"], "dropout": 0.05})", "single"),
              ElementsAre("workload.lora.dropout"));
  EXPECT_THAT(warned(R"({"targets": ["all-linear"], "dora": true})", "single"),
              ElementsAre("workload.lora.dora"));
  EXPECT_THAT(warned(R"({"targets": ["q_proj"], "dropout": 0.05})", "single"), ElementsAre());
}

/// What Dynamo cannot trace of peft's DoRA: a dictionary that is emptied in a checkpoint, and a
/// parameter that is made of a Conv1D's weight.
TEST(LoraTargets, WithMagnitudesAreCompiledWhereDynamoTracesThem) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const auto error = [](const char* model, const char* precision, const char* checkpointing) {
    Json job = Json::parse(
        R"({"cluster": "1xH100-SXM-80GB", "framework": "single", "trainer": "hf_trainer",
            "compile": true, "workload": {"method": "lora", "lora": {"dora": true}}})");
    job["model"] = model;
    job["precision"] = precision;
    job["checkpointing"] = checkpointing;
    return error_text([&] { load_job(job, "job.json", {&hardware, ""}); });
  };
  EXPECT_EQ(error("llama-3.2-1b", "bf16-autocast", "none"), "no error");
  EXPECT_THAT(error("llama-3.2-1b", "bf16-autocast", "full"), HasSubstr("dictionary"));
  EXPECT_EQ(error("gpt2", "bf16-pure", "none"), "no error");
  EXPECT_THAT(error("gpt2", "bf16-autocast", "none"), HasSubstr("stored turned"));
}

TEST(LoraTargets, LeaveOutWhatMambasKernelsRead) {
  EXPECT_THAT(error_text([] { load("mamba-130m", R"({"targets": ["all-linear"]})"); }),
              HasSubstr("peft refuses out_proj"));
  EXPECT_NO_THROW(load("mamba-130m", R"({"targets": ["in_proj", "x_proj"]})"));
}

/// Phi-4's attention is one linear layer: what it is told has to be a name that it has.
TEST(LoraTargets, ThatNoLayerHasAreToldAnotherName) {
  EXPECT_THAT(error_text([] { load("phi-4", R"({"targets": ["q_proj", "v_proj"]})"); }),
              HasSubstr("such as o_proj"));
}

}  // namespace
}  // namespace shardplan::lora_targets_test
