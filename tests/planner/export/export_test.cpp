// Exports: what they say, and that a ds_config read back is the same plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/export.h"
#include "frameworks/deepspeed/ds_config.h"
#include "frameworks/fsdp2/python.h"
#include "frameworks/megatron/arguments.h"
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

/// Calls visit(job, its choices in words) for every third plan of a space; how many plans it has.
template <typename Visit>
int for_every_third(const Job& job, const AxisValues& values, Visit&& visit) {
  const SearchSpace space = make_space(job.model, job.plan, values);
  Plan plan = space.base;
  Choice choice(space.axes.size(), 0);
  RuleCounts counts = no_counts(space);
  int plans = 0;
  walk(space, plan, choice, 0, space.axes.size(), counts, [&] {
    if (++plans % 3 != 0) return;
    Job changed = job;
    changed.plan = plan;
    std::string what;
    for (std::size_t a = 0; a < choice.size(); ++a)
      what += space.axes[a].name + " " + space.axes[a].values[choice[a]] + "; ";
    visit(changed, what);
  });
  return plans;
}

TEST(DsConfig, ReadBackGivesTheSameEstimateAtEveryStageAndOffload) {
  const Json asked = Json::parse(kAsked);
  const Job job = job_of(asked);
  AxisValues values;
  values.gpus = {2, 8};
  values.precisions = {"bf16-master", "fp16-master", "fp32", "bf16-autocast", "fp16-autocast"};
  values.checkpointings = {{Checkpointing::none, {}}, {Checkpointing::full, {}}};
  values.micro_batches = {2};
  values.accumulations = {1, 4};
  values.reduce_buckets = {1'000'000, 500'000'000};
  values.prefetch_buckets = {0, 50'000'000};
  values.persistence_thresholds = {0, 100'000};
  values.mlp_tiles = {0};
  values.tensors = values.ulysses = values.pipelines = {1, 2};
  const int plans = for_every_third(job, values, [&](const Job& changed, const std::string& what) {
    expect_same_when_read_back(asked, changed, what);
  });
  EXPECT_GT(plans, 500);
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
  Plan plan;
  EXPECT_THAT(export_formats(plan),
              ::testing::ElementsAre("ds_config", "accelerate", "launch", "job"));
  plan.framework.kind = FrameworkKind::ddp;
  EXPECT_THAT(export_formats(plan), Not(::testing::Contains("ds_config")));
  plan.framework.kind = FrameworkKind::megatron;
  EXPECT_THAT(export_formats(plan), ::testing::ElementsAre("launch", "job"));
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

TEST(JobFile, KeepsFeedForwardsInParts) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = "single";
  asked["cluster"] = "1xA100-40GB";
  asked["precision"] = "bf16-pure";
  Job tiled = job_of(asked);
  tiled.plan.mlp_tiles = 2;
  EXPECT_EQ(estimate_text(job_of(job_json(asked, tiled))), estimate_text(tiled));
  EXPECT_FALSE(job_json(asked, job_of(asked)).contains("mlp_tiles"));
}

constexpr const char* kMegatron = R"({"model": {"model_type": "mixtral", "hidden_size": 256,
  "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
  "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 3, "vocab_size": 4000},
  "cluster": "2x4xA100-40GB", "framework": "megatron", "workload": {"sequence_length": 512}})";

TEST(JobFile, OfEveryDegreeReadBackGivesTheSameEstimate) {
  const Json asked = Json::parse(kMegatron);
  const Job job = job_of(asked);
  AxisValues values;
  values.gpus = {8};
  values.micro_batches = {2};
  values.accumulations = {4};
  values.tensors = values.contexts = values.pipelines = values.virtual_pipelines = {1, 2};
  values.experts = {1, 2, 4};
  const int plans = for_every_third(job, values, [&](const Job& changed, const std::string& what) {
    const Json json = job_json(asked, changed);
    EXPECT_EQ(estimate_text(job_of(json)), estimate_text(changed)) << what << json.dump(2);
  });
  EXPECT_GT(plans, 300);
}

TEST(Exports, SayAnFsdp1PlanToAccelerateAndPyTorch) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = Json::parse(R"({"name": "fsdp1", "sharding_strategy": "shard_grad_op",
    "backward_prefetch": "post", "use_orig_params": true, "reduce_dtype": "fp32"})");
  asked["precision"] = "bf16-autocast";
  const Job job = job_of(asked);
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  EXPECT_THAT(
      export_as("accelerate", asked, job, e).text,
      AllOf(HasSubstr("fsdp_version: 1\n"), HasSubstr("fsdp_sharding_strategy: SHARD_GRAD_OP\n"),
            HasSubstr("fsdp_backward_prefetch: BACKWARD_POST\n"),
            HasSubstr("fsdp_use_orig_params: true\n")));
  EXPECT_THAT(
      export_as("fsdp1", asked, job, e).text,
      AllOf(HasSubstr("ShardingStrategy.SHARD_GRAD_OP"),
            HasSubstr("param_dtype=torch.bfloat16, reduce_dtype=torch.float32"),
            HasSubstr("BackwardPrefetch.BACKWARD_POST"), HasSubstr("use_orig_params=True")));
  EXPECT_EQ(estimate_text(job_of(job_json(asked, job))), estimate_text(job));
}

TEST(Exports, SayAMegatronPlanInMegatronsArguments) {
  Json asked = Json::parse(kMegatron);
  asked["checkpointing"] = "full";
  asked["parallel"] = Json::parse(R"({"tensor": 2, "pipeline": 2, "virtual_pipeline": 2,
    "expert": 2, "expert_tensor": 1})");
  asked["workload"]["gradient_accumulation"] = 6;
  const Job job = job_of(asked);
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  const std::string text = export_as("launch", asked, job, e).text;
  for (const char* argument : {"--tensor-model-parallel-size 2\n",
                               "--sequence-parallel\n",
                               "--pipeline-model-parallel-size 2\n",
                               "--num-virtual-stages-per-pipeline-rank 2\n",
                               "--expert-model-parallel-size 2\n",
                               "--moe-router-topk 3\n",
                               "--expert-tensor-parallel-size 1\n",
                               "--seq-length 512\n",
                               "--micro-batch-size 1\n",
                               "--global-batch-size 12\n",
                               "--bf16\n",
                               "--recompute-granularity full\n",
                               "--use-distributed-optimizer\n",
                               "--overlap-param-gather\n",
                               "--num-layers 4\n",
                               "--ffn-hidden-size 512\n",
                               "--num-query-groups 4\n",
                               "--kv-channels 32\n",
                               "--num-experts 4\n",
                               "export CUDA_DEVICE_MAX_CONNECTIONS=1\n",
                               "torchrun --nnodes 2 --nproc-per-node 4"})
    EXPECT_THAT(text, HasSubstr(argument));
  EXPECT_THAT(text, Not(HasSubstr("accelerate")));
  const TemporaryFolder folder;
  EXPECT_EQ(std::system(("bash -n " + folder.file("launch.sh", text)).c_str()), 0);
  asked["parallel"] = Json::parse(R"({"tensor": 2, "context": 2, "pipeline": 2,
    "stage_layers": [1, 3]})");
  const Job rings = job_of(asked);
  EXPECT_THAT(megatron_arguments(rings),
              AllOf(HasSubstr("--context-parallel-size 2\n"), HasSubstr("--cp-comm-type p2p\n"),
                    HasSubstr("--pipeline-model-parallel-layout 'Et|tttL'\n")));
}

TEST(Exports, SayThatSavedActivationsAreDistributedWhereTheyAre) {
  Json asked = Json::parse(kMegatron);
  asked["model"] = "llama-3.2-1b";  // experts beside a tensor degree want tokens divided
  asked["framework"] = Json{{"name", "megatron"}, {"distribute_saved_activations", true}};
  asked["checkpointing"] = "full";
  asked["parallel"] = Json{{"tensor", 2}, {"sequence_parallel", false}};
  Job job = job_of(asked);
  constexpr const char* kArgument = "--distribute-saved-activations\n";
  EXPECT_THAT(megatron_arguments(job), HasSubstr(kArgument));
  EXPECT_TRUE(job_json(asked, job)["framework"]["distribute_saved_activations"].get<bool>());
  job.plan.parallel.sequence_parallel = true;  // as a search may
  EXPECT_THAT(megatron_arguments(job), Not(HasSubstr(kArgument)));
  EXPECT_EQ(estimate_text(job_of(job_json(asked, job))), estimate_text(job));
}

TEST(Exports, LeaveAdaptersOutOfMegatronsArguments) {
  Json asked = Json::parse(kMegatron);
  asked["workload"]["method"] = "lora";
  const Job job = job_of(asked);
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  EXPECT_THROW(export_as("megatron", asked, job, e), InputError);
  EXPECT_THAT(export_formats(job.plan), ::testing::ElementsAre("job"));
}

TEST(Exports, SayMegatronsRecipesOfEightBits) {
  Json asked = Json::parse(kMegatron);
  asked["model"] = "llama-3.2-1b";
  asked["cluster"] = "8xH100-80GB";
  for (const auto& [linear, recipe] :
       {std::pair{"fp8-delayed", "delayed"}, std::pair{"fp8-current", "tensorwise"},
        std::pair{"fp8-blockwise", "blockwise"}}) {
    asked["precision"] = Json{{"preset", "bf16-master"}, {"linear", linear}};
    const Job job = job_of(asked);
    EXPECT_THAT(megatron_arguments(job),
                HasSubstr(std::string("--fp8-format hybrid\n  --fp8-recipe ") + recipe + "\n"));
    EXPECT_EQ(estimate_text(job_of(job_json(asked, job))), estimate_text(job));
  }
}

TEST(Exports, SayWhoseLayersMegatronRuns) {
  Json asked = Json::parse(kMegatron);
  EXPECT_THAT(megatron_arguments(job_of(asked)), Not(HasSubstr("--transformer-impl")));
  asked["framework"] = Json{{"name", "megatron"}, {"transformer_impl", "local"}};
  const Job job = job_of(asked);
  EXPECT_THAT(megatron_arguments(job), HasSubstr("--transformer-impl local\n"));
  EXPECT_EQ(estimate_text(job_of(job_json(asked, job))), estimate_text(job));
}

TEST(Exports, SayWhatAModelUnderDeepSpeedMustCallItself) {
  const Json asked = Json::parse(R"({"model": {"model_type": "mixtral", "hidden_size": 256,
    "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 4000},
    "cluster": "4xA100-40GB", "checkpointing": "full", "parallel": {"expert": 2},
    "workload": {"sequence_length": 512}, "framework": {"name": "deepspeed", "zero_stage": 1,
    "checkpoint_function": "deepspeed", "moe": {"capacity_factor": 1.5}}})");
  const Job job = job_of(asked);
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  EXPECT_THAT(launch_script(job, e), AllOf(HasSubstr("deepspeed.checkpointing.configure"),
                                           HasSubstr("deepspeed.moe.layer.MoE")));
  const Json framework = job_json(asked, job)["framework"];
  EXPECT_EQ(framework["checkpoint_function"], "deepspeed");
  EXPECT_EQ(framework["moe"]["capacity_factor"], 1.5);
}

TEST(Exports, CarryEveryChoiceToTheLaunchScript) {
  const auto script = [](const Json& more) {
    Json asked = Json::parse(kAsked);
    asked["framework"] = "single";
    asked["cluster"] = "1xH100-80GB";
    asked["trainer"] = "hf_trainer";
    asked.erase("optimizer");
    asked.merge_patch(more);
    const Job job = job_of(asked);
    return launch_script(job, estimate(job.model, job.plan, load_calibration()));
  };
  const Json qlora{
      {"workload",
       {{"method", "lora"},
        {"lora",
         {{"rank", 8}, {"targets", {"q_proj", "v_proj"}}, {"quantization", "nf4_double"}}}}},
      {"optimizer", "paged_adamw_8bit"}};
  EXPECT_THAT(
      script(qlora),
      AllOf(
          HasSubstr("--use_peft true --lora_r 8 "),
          HasSubstr("--lora_target_modules q_proj v_proj\n"),
          HasSubstr("--load_in_4bit true --bnb_4bit_quant_type nf4 --use_bnb_nested_quant true\n"),
          HasSubstr("--optim paged_adamw_8bit\n"), HasSubstr("--dtype bfloat16\n")));
  EXPECT_THAT(script({{"compile", {{"mode", "reduce-overhead"}}}, {"precision", "bf16-pure"}}),
              AllOf(HasSubstr("--torch_compile true\n"),
                    HasSubstr("--torch_compile_mode reduce-overhead\n")));
  EXPECT_THAT(script({{"checkpointing", "selective"}}), HasSubstr("# checkpointing selective"));
  EXPECT_THAT(script({{"attention", "eager"}}), HasSubstr("--attn_implementation eager\n"));
  EXPECT_THAT(script({{"optimizer", "muon"}}), HasSubstr("# optimizer muon"));
  EXPECT_THAT(script({{"loss", "fused_linear"}}), HasSubstr("# the head and its loss in one"));
}

TEST(Exports, SayFp8InAcceleratesFile) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = "ddp";
  asked["cluster"] = "4xH100-80GB";
  asked.erase("optimizer");
  for (const auto& [linear, words] : {std::pair("fp8-tensorwise", "mixed_precision: fp8\n"),
                                      std::pair("fp8-delayed", "backend: TE\n"),
                                      std::pair("fp8-rowwise", "# linears in fp8-rowwise")}) {
    asked["precision"] = {{"preset", "bf16-autocast"}, {"linear", linear}};
    const Job job = job_of(asked);
    EXPECT_THAT(accelerate_yaml(job, estimate(job.model, job.plan, load_calibration())),
                HasSubstr(words));
  }
}

TEST(Exports, MakeAMeshForTensorParallelFsdp) {
  Json asked = Json::parse(kAsked);
  asked["framework"] = "fsdp2";
  asked["parallel"] = Json{{"tensor", 2}};
  const Job job = job_of(asked);
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  EXPECT_THAT(fsdp2_python(job, e), AllOf(HasSubstr("WORLD = 8\n"), HasSubstr("TENSOR = 2"),
                                          HasSubstr("(WORLD // TENSOR, TENSOR)"),
                                          HasSubstr("def shard(model, blocks, mesh):"),
                                          HasSubstr("mesh = mesh[\"data\"]")));
  EXPECT_THAT(launch_script(job, e), HasSubstr("tp_plan=\"auto\""));
}

}  // namespace
}  // namespace shardplan
