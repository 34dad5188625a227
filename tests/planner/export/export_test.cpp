// Exports: what they say, and that a ds_config read back is the same plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/ds_config.h"
#include "export/export.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "questions/search/axes.h"
#include "save/estimate.h"
#include "support/error_of.h"
#include "support/subprocess.h"

namespace shardplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAsked = R"({"model": {"model_type": "llama", "hidden_size": 256,
  "intermediate_size": 704, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 4000},
  "cluster": {"name": "2x4xA100-40GB", "host_memory_bytes": 549755813888,
              "nvme": {"bytes": 4000000000000}},
  "framework": "deepspeed", "workload": {"sequence_length": 512}})";

Job job_of(const Json& json, const std::string& directory = "") {
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  context.directory = directory;
  return load_job(json, "job.json", context);
}

std::string estimate_text(const Job& job) {
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  Json json = to_json(e, job);
  json.erase("warnings");
  json.erase("assumed");
  return json.dump();
}

bool holds_auto(const Json& json) {
  if (!json.is_structured()) return json == "auto";
  for (const auto& item : json)
    if (holds_auto(item)) return true;
  return false;
}

/// Writes the plan's job.json and ds_config.json and reads them back as a user would.
void expect_same_when_read_back(const Json& asked, const Job& job, const std::string& what) {
  const TemporaryFolder folder;
  const Json config = ds_config_of(job.plan, job.ds_config, job.autos);
  EXPECT_FALSE(holds_auto(config)) << what;
  folder.file("ds_config.json", config.dump());
  const Job back = job_of(job_json(asked, job), folder.path(""));
  EXPECT_EQ(estimate_text(back), estimate_text(job)) << what << "\n" << config.dump(2);
  for (const Diagnostic& d : back.diagnostics)
    EXPECT_EQ(d.severity, Severity::note) << what << ": " << to_string(d);
}

TEST(DsConfig, ReadBackGivesTheSameEstimateAtEveryStageAndOffload) {
  const Json asked = Json::parse(kAsked);
  const Job job = job_of(asked);
  AxisValues values;
  values.gpus = {2, 8};
  values.precisions = {"bf16-master", "fp16-master", "fp32", "bf16-autocast", "fp16-autocast"};
  values.checkpointings = {Checkpointing::none, Checkpointing::full};
  values.micro_batches = {2};
  values.accumulations = {1, 4};
  values.reduce_buckets = {1'000'000, 500'000'000};
  values.prefetch_buckets = {0, 50'000'000};
  values.persistence_thresholds = {0, 100'000};
  const SearchSpace space = make_space(job.model, job.plan, values);
  Plan plan = space.base;
  Choice choice(space.axes.size(), 0);
  RuleCounts counts = no_counts(space);
  int looked = 0;
  walk(space, plan, choice, 0, space.axes.size(), counts, [&] {
    if (++looked % 3 != 0) return;  // of some thousands
    Job changed = job;
    changed.plan = plan;
    std::string what;
    for (std::size_t a = 0; a < choice.size(); ++a)
      what += space.axes[a].name + " " + space.axes[a].values[choice[a]] + "; ";
    expect_same_when_read_back(asked, changed, what);
  });
  EXPECT_GT(looked, 500);
}

TEST(DsConfig, KeepsWhatThePlanDoesNotDecideAndResolvesAuto) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = Json::parse(R"({"name": "deepspeed", "ds_config": {
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "train_batch_size": "auto", "gradient_clipping": "auto", "steps_per_print": 7,
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
      "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
      "stage3_max_live_parameters": 5e8,
      "stage3_gather_16bit_weights_on_model_save": true},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": 0.1}}}})");
  asked["precision"] = "bf16-master";
  const Job job = job_of(asked);
  const Json config = ds_config_of(job.plan, job.ds_config, job.autos);
  EXPECT_FALSE(holds_auto(config)) << config.dump(2);
  EXPECT_EQ(config["steps_per_print"], 7);
  EXPECT_EQ(config["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"], true);
  EXPECT_EQ(config["zero_optimization"]["reduce_bucket_size"], 256 * 256);
  EXPECT_EQ(config["zero_optimization"]["stage3_max_live_parameters"], 500'000'000);
  EXPECT_EQ(config["optimizer"]["params"]["weight_decay"], 0.1);
  EXPECT_EQ(config["train_batch_size"], 8 * config["train_micro_batch_size_per_gpu"].get<int>());
  expect_same_when_read_back(asked, job, "with a file of its own");
}

TEST(DsConfig, LeavesOutWhatHasNoEffectAtItsStage) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = Json{{"name", "deepspeed"}, {"zero_stage", 1}};
  const Json config = ds_config_of(job_of(asked).plan, nullptr, {});
  for (const auto& [key, value] : config["zero_optimization"].items())
    EXPECT_THAT(key, Not(HasSubstr("stage3_")));
}

TEST(DsConfig, IsForDeepSpeedOnly) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = "fsdp2";
  const Job job = job_of(asked);
  EXPECT_THAT(error_text([&] { ds_config_of(job.plan, nullptr, {}); }),
              AllOf(HasSubstr("framework.name"), HasSubstr("runs under fsdp2")));
}

std::string exported(const char* framework, std::string_view format) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = framework;
  const Job job = job_of(asked);
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  return export_as(format, asked, job, e).text;
}

TEST(Exports, BeginWithWhatIsPredicted) {
  for (const auto& [framework, format] :
       {std::pair("deepspeed", "accelerate"), std::pair("deepspeed", "launch"),
        std::pair("fsdp2", "fsdp2"), std::pair("ddp", "accelerate")}) {
    const std::string text = exported(framework, format);
    EXPECT_THAT(text, AllOf(HasSubstr("# FITS:"), HasSubstr("upper bound"), HasSubstr("tokens/s")))
        << format;
  }
}

TEST(Exports, NameProcessesNodesAndFiles) {
  EXPECT_THAT(
      exported("deepspeed", "accelerate"),
      AllOf(HasSubstr("distributed_type: DEEPSPEED\n"), HasSubstr("num_machines: 2\n"),
            HasSubstr("num_processes: 8\n"), HasSubstr("deepspeed_config_file: ds_config.json\n"),
            HasSubstr("deepspeed_multinode_launcher: standard\n"),
            Not(HasSubstr("mixed_precision"))));
  EXPECT_THAT(exported("fsdp2", "accelerate"),
              AllOf(HasSubstr("fsdp_version: 2\n"), HasSubstr("mixed_precision: bf16\n")));
  EXPECT_THAT(exported("deepspeed", "launch"),
              AllOf(HasSubstr("--num_nodes 2 --num_gpus 4"), HasSubstr("srun --nodes 2"),
                    HasSubstr("torchrun --nnodes 2 --nproc-per-node 4")));
  EXPECT_THAT(exported("fsdp2", "fsdp2"),
              AllOf(HasSubstr("reshard_after_forward=True"),
                    HasSubstr("param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16"),
                    HasSubstr("PARAMETER_DTYPE = torch.float32"), HasSubstr("WORLD = 8")));
}

TEST(Exports, AreThoseThatFitTheFramework) {
  EXPECT_THAT(export_formats(FrameworkKind::deepspeed),
              ::testing::ElementsAre("ds_config", "accelerate", "launch", "job"));
  EXPECT_THAT(export_formats(FrameworkKind::ddp), Not(::testing::Contains("ds_config")));
  EXPECT_THAT(export_formats(FrameworkKind::megatron), ::testing::ElementsAre("job"));
  EXPECT_THAT(error_text([] { exported("deepspeed", "acelerate"); }),
              HasSubstr("did you mean 'accelerate'?"));
}

TEST(JobFile, OfAnyFrameworkReadBackGivesTheSameEstimate) {
  for (const char* framework : {"fsdp2", "ddp"}) {
    Json asked = Json::parse(kAsked);
    asked["framework"] = framework;
    asked["precision"] = "bf16-pure";
    asked["optimizer"] = Json{{"name", "adamw"}, {"implementation", "foreach"}};
    const Job job = job_of(asked);
    const Job back = job_of(job_json(asked, job));
    EXPECT_EQ(estimate_text(back), estimate_text(job)) << framework;
  }
}

}  // namespace
}  // namespace shardplan
