// Optimizer states as the optimizers' own code made them (tests/golden/optimizers/measure.py), and
// what cannot be run without a GPU by its closed form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "optimizers/registry.h"
#include "optimizers/states.h"
#include "program/tape.h"
#include "support/error_of.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path kGolden = std::filesystem::path(SHARDPLAN_SOURCE_DIR) / "tests/golden";

Job load(const Json& json) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  return load_job(json, "job.json", context);
}

struct States {
  std::int64_t gpu = 0, host = 0;
};

/// Resident states of the worst rank of a job.
States states_of(const Job& job, std::int64_t rank = 0) {
  const RankModel share(job.model, job.plan);
  const Program program = lower(share.model(), job.plan, share.run(), rank);
  States states;
  for (const Event& e : program.resident)
    if (e.category == Category::optimizer_states) states.gpu += e.bytes * e.count;
  states.host = program.host.total();
  return states;
}

std::int64_t gpu_states(const std::string& json) {
  return states_of(load(parse_json(json, "test"))).gpu;
}

/// A run of a golden file as a job; every rank of DeepSpeed and FSDP2 has a GPU.
Json job_of(const Json& file, const Json& run) {
  const bool single = run["framework"]["name"] == "single";
  Json job{{"model", {{"tensors", file["models"][run["model"].get<std::string>()]}}},
           {"cluster", single ? "1xH100" : "2xH100"},
           {"framework", run["framework"]},
           {"precision", run["precision"]}};
  const bool deepspeed = run["framework"]["name"] == "deepspeed";
  if (!deepspeed) job["optimizer"] = {{"name", file["optimizer"]}};
  if (!deepspeed && file["optimizer"] == "sgd") job["optimizer"]["momentum"] = 0.9;
  return job;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, StatesAreThoseThatItsOwnCodeMakes) {
  const Json file = read_json_file((kGolden / "optimizers" / GetParam()).string());
  const OptimizerDescription* kind = find_optimizer(file["optimizer"].get<std::string>());
  ASSERT_NE(kind, nullptr);
  int compared = 0;
  for (const Json& run : file["runs"]) {
    const Json framework = run["framework"];
    SCOPED_TRACE(run.dump());
    if (run.contains("stops")) {
      if (framework["name"] == "fsdp2") {
        EXPECT_FALSE(kind->stops[static_cast<std::size_t>(Given::shards)].empty());
      }
      continue;
    }
    // Blocks are rounded by PyTorch's allocator; flat buffers are taken as they are.
    const std::int64_t unit = framework["name"] == "deepspeed" ? 1 : kAllocationUnit;
    std::int64_t made = 0;
    for (const Json& bytes : run["ranks"][0]) made += round_up(bytes.get<std::int64_t>(), unit);
    EXPECT_EQ(states_of(load(job_of(file, run))).gpu, made);
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden / "optimizers"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Golden, ::testing::ValuesIn(golden_files()),
                         [](const auto& file) {
                           return file.param.substr(0, file.param.find('.'));
                         });

TEST(Registry, WhatIsCalledExactWasRun) {
  for (const OptimizerDescription* kind : optimizers()) {
    const std::string name(kind->name);
    EXPECT_FALSE(kind->words.empty());
    EXPECT_FALSE(kind->variants.empty()) << name;
    EXPECT_EQ(find_optimizer(name), kind);
    for (const Evidence& e : kind->evidence) EXPECT_FALSE(e.of.empty()) << name;
    const bool was_run = std::filesystem::exists(kGolden / "optimizers" / (name + ".json"));
    EXPECT_TRUE(was_run || kind->evidence[0].source != Source::exact) << name;
  }
}

constexpr const char* kQwen = R"({"model": "qwen2.5-0.5b", "optimizer": ")";

std::int64_t qwen(const std::string& optimizer, const std::string& framework) {
  return gpu_states(kQwen + optimizer + R"(", "cluster": "1xH100", )" + framework + "}");
}

TEST(Frameworks, AgreeOnWhatAnOptimizerKeeps) {
  const std::string single = R"("framework": "single", "precision": "fp32")";
  const std::string ddp = R"("framework": "ddp", "precision": "fp32")";
  const std::string fsdp2 = R"("framework": "fsdp2", "precision": "fp32")";
  const std::string zero2 = R"("framework": {"name": "deepspeed", "zero_stage": 2})";
  for (const auto* name : {"adamw", "adam", "sgd", "adagrad", "lion", "lamb", "adamw_8bit",
                           "paged_adamw", "paged_adamw_8bit", "adamw_4bit"}) {
    const std::int64_t one = qwen(name, single);
    EXPECT_EQ(qwen(name, ddp), one) << name;
    EXPECT_EQ(qwen(name, fsdp2), one) << name;
    if (std::string(name).starts_with("paged")) continue;  // flat, all of it is managed memory
    // 290 tensors: rounding, and small tensors that are not quantized.
    EXPECT_NEAR(static_cast<double>(qwen(name, zero2)), static_cast<double>(one),
                0.001 * static_cast<double>(one) + 290 * 512)
        << name;
  }
}

TEST(Muon, TakesMatricesInsideTheNetworkAndAdamWTheRest) {
  // qwen2.5-0.5b: 494,032,768 parameters, of which the tied embedding has 151,936 × 896 and 290
  // tensors' vectors the rest beside the matrices.
  const std::int64_t psi = 494'032'768, embedding = 151'936 * 896;
  const std::int64_t vectors = 24 * (896 + 128 + 128 + 2 * 896) + 896;
  const std::int64_t matrices = psi - embedding - vectors;
  const std::int64_t one = qwen("muon", R"("framework": "single", "precision": "fp32")");
  const std::int64_t exact = 4 * matrices + 8 * (embedding + vectors);
  EXPECT_GE(one, exact);
  EXPECT_LT(one - exact, 400 * 3 * 512);
  // ZeRO keeps the momentum in the gradients' type, here bf16.
  const std::int64_t zero = qwen("muon", R"("framework": {"name": "deepspeed", "zero_stage": 2})");
  EXPECT_NEAR(static_cast<double>(zero),
              static_cast<double>(2 * matrices + 8 * (embedding + vectors)), 4096);
  // With fp32 accumulation it is fp32 at stage 2; stage 1 is BF16_Optimizer, which has none.
  const std::string fp32 = R"(, "data_types": {"grad_accum_dtype": "fp32"}}})";
  const std::string config =
      R"("framework": {"name": "deepspeed", "ds_config": {"bf16": {"enabled": true},
          "zero_optimization": {"stage": )";
  EXPECT_NEAR(static_cast<double>(qwen("muon", config + "2}" + fp32)), static_cast<double>(exact),
              4096);
  EXPECT_NEAR(static_cast<double>(qwen("muon", config + "1}" + fp32)),
              static_cast<double>(8 * (embedding + vectors)), 4096);
}

TEST(Paged, StatesAreTheHostsToHold) {
  const Job job = load(parse_json(R"({"model": {"tensors": [["large.weight", [400, 300]],
    ["small.weight", [64, 64]], ["bias", [64]]]}, "cluster": "1xH100", "framework": "single",
    "precision": "fp32", "optimizer": "paged_adamw_8bit"})",
                                  "test"));
  const States states = states_of(job);
  EXPECT_EQ(states.host, 2 * 120'000);
  // Scales of 469 and 16 blocks, the small matrix quantized, the vector not.
  EXPECT_EQ(states.gpu, 2 * (2048 + 4096 + 512 + 512));
}

TEST(EightBit, EmbeddingsStayWideOnlyWhereAskedTo) {
  const std::string job = R"({"model": "qwen2.5-0.5b", "cluster": "1xH100", "framework": "single",
    "precision": "fp32", "optimizer": {"name": "adamw_8bit")";
  const std::int64_t embedding = 151'936 * 896;
  EXPECT_EQ(gpu_states(job + R"(, "embeddings_32bit": true}})") - gpu_states(job + "}}"),
            2 * (4 * embedding - embedding - round_up(embedding / 256 * 4, kAllocationUnit)));
}

TEST(DsConfig, MomentumAndAmsgradAreStates) {
  const auto states = [](const std::string& optimizer) {
    return gpu_states(R"({"model": {"tensors": [["w", [64, 100]]]}, "cluster": "1xH100",
      "framework": {"name": "deepspeed", "ds_config": {"bf16": {"enabled": true},
      "zero_optimization": {"stage": 2}, "zero_allow_untested_optimizer": true,
      "optimizer": )" +
                      optimizer + "}}}");
  };
  EXPECT_EQ(states(R"({"type": "SGD"})"), 0);
  EXPECT_EQ(states(R"({"type": "SGD", "params": {"momentum": 0.9}})"), 4 * 6400);
  EXPECT_EQ(states(R"({"type": "Adam"})"), 8 * 6400);
  EXPECT_EQ(states(R"({"type": "Adam", "params": {"torch_adam": true, "amsgrad": true}})"),
            12 * 6400);
}

TEST(Implementations, ThatAnOptimizerLacksAreRefused) {
  const std::string job = R"({"model": "gpt2", "cluster": "1xH100", "framework": "single",
    "optimizer": {"name": "adafactor", "implementation": "fused"}})";
  const std::string said = error_text([&] { load(parse_json(job, "test")); });
  EXPECT_THAT(said, HasSubstr("Adafactor has no fused one"));
  EXPECT_THAT(said, HasSubstr("for-loop or foreach"));
}

TEST(Implementations, ThatAreNotSaidAreAssumedAndSaid) {
  const auto assumed =
      [](const std::string& optimizer) {
        return load(parse_json(R"({"model": "gpt2", "cluster": "1xH100", "framework": "single",
      "optimizer": )" + optimizer + "}",
                               "test"))
            .assumed;
      };
  EXPECT_THAT(assumed(R"("muon")"), Contains(HasSubstr("optimizer implementation: for-loop")));
  EXPECT_THAT(assumed(R"("adamw")"), Not(Contains(HasSubstr("optimizer implementation"))));
  EXPECT_THAT(assumed(R"({"name": "muon", "implementation": "for-loop"})"),
              Not(Contains(HasSubstr("optimizer implementation"))));
}

}  // namespace
}  // namespace shardplan
