// Jobs: every field arrives in the plan, and every bad one is reported with file, key path, what
// was expected and the nearest spelling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/hardware.h"
#include "load/job.h"
#include "lowering/segments.h"
#include "optimizers/registry.h"
#include "support/error_of.h"
#include "support/plan_testing.h"

namespace shardplan::job_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json base() {
  return parse_json(R"({"model": {"model_type": "llama", "hidden_size": 256,
    "intermediate_size": 704, "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 1000},
    "cluster": "8xH100"})",
                    "base");
}

Job load(const Json& json) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  return load_job(json, "job.json", context);
}

/// The base job with the keys of `patch` put over it.
Job job(const std::string& patch) {
  Json json = base();
  json.update(parse_json(patch, "patch"));
  return load(json);
}

std::string error(const std::string& patch) {
  return error_text([&] { job(patch); });
}

TEST(Job, TakesDefaultsWhereItIsSilentAndSaysSo) {
  const Job j = load(base());
  EXPECT_EQ(j.plan.framework.kind, FrameworkKind::deepspeed);
  EXPECT_EQ(j.plan.framework.deepspeed.zero.stage, 3);
  EXPECT_EQ(j.plan.cluster.world(), 8);
  EXPECT_EQ(j.plan.workload.micro_batch, 1);
  EXPECT_EQ(j.plan.workload.gradient_accumulation, 1);
  EXPECT_EQ(j.plan.workload.sequence_length, 2048);
  EXPECT_EQ(j.plan.precision.name, "bf16-master");
  EXPECT_EQ(j.plan.optimizer.kind->name, "adamw");
  EXPECT_EQ(j.plan.attention, AttentionKind::sdpa);
  EXPECT_EQ(j.plan.checkpointing, Checkpointing::none);
  EXPECT_EQ(j.plan.gradient_clipping, 1.0);
  EXPECT_THAT(j.assumed,
              AllOf(Contains(HasSubstr("ZeRO stage 3")), Contains("micro-batch: 1"),
                    Contains("sequence length: 2048"), Contains("precision: bf16-master")));
}

TEST(Job, OneGpuMeansPlainPyTorch) {
  const Job j = job(R"({"cluster": "1xH100"})");
  EXPECT_EQ(j.plan.framework.kind, FrameworkKind::single);
  EXPECT_EQ(j.plan.precision.name, "bf16-autocast");
}

TEST(Job, ReadsTheWholeWorkload) {
  const Job j = job(R"({"schema": "shardplan.job/1", "framework": "ddp",
    "workload": {"kind": "train", "method": "full", "micro_batch": 3, "sequence_length": 512,
                 "target_length": 64, "gradient_accumulation": 4},
    "attention": "eager", "checkpointing": "full", "gradient_clipping": 0})");
  EXPECT_EQ(j.plan.workload.micro_batch, 3);
  EXPECT_EQ(j.plan.workload.sequence_length, 512);
  EXPECT_EQ(j.plan.workload.target_length, 64);
  EXPECT_EQ(j.plan.workload.gradient_accumulation, 4);
  EXPECT_EQ(j.plan.attention, AttentionKind::eager);
  EXPECT_EQ(j.plan.checkpointing, Checkpointing::full);
  EXPECT_EQ(j.plan.gradient_clipping, 0);
}

TEST(Job, LoraFreezesTheBaseModel) {
  const Job j = job(R"({"workload": {"method": "lora",
                        "lora": {"rank": 8, "targets": ["q_proj", "down_proj"]}}})");
  ASSERT_TRUE(j.plan.workload.lora.has_value());
  EXPECT_EQ(j.plan.workload.lora->rank, 8);
  EXPECT_THAT(j.plan.workload.lora->targets, ElementsAre("q_proj", "down_proj"));
  EXPECT_EQ(j.model.trainable_count(), 2 * 8 * (256 + 256 + 704 + 256));
  EXPECT_THAT(job(R"({"workload": {"method": "lora"}})").plan.workload.lora->targets,
              ElementsAre("q_proj", "v_proj"));
}

TEST(Job, LoraOfAllLinearsLeavesTheHeadAlone) {
  const auto trained = [](const std::string& targets) {
    return job(R"({"workload": {"method": "lora", "lora": {"targets": )" + targets + "}}}")
        .model.trainable_count();
  };
  EXPECT_EQ(trained(R"(["all-linear"])"),
            trained(R"(["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                        "down_proj"])"));
}

TEST(Job, LoraKeepsTheFrozenModelIn16Bits) {
  const auto precision = [](const std::string& more) {
    return job(R"({"workload": {"method": "lora"})" + more + "}").plan.precision.name;
  };
  EXPECT_EQ(precision(R"(, "framework": {"name": "single"}, "cluster": "1xA100-40GB")"),
            "bf16-pure");
  for (const std::string framework : {"ddp", "fsdp1", "fsdp2"})
    EXPECT_EQ(precision(R"(, "framework": {"name": ")" + framework + R"("})"), "bf16-pure")
        << framework;
  EXPECT_EQ(precision(R"(, "framework": {"name": "ddp"}, "precision": "bf16-autocast")"),
            "bf16-autocast");
  const Job j = job(R"({"workload": {"method": "lora"}, "framework": {"name": "ddp"}})");
  EXPECT_THAT(j.assumed, Contains("precision: bf16-pure, the frozen model in 16 bits"));
}

TEST(Job, PreparesOnlyAQuantizedBase) {
  const auto lora = [](const char* more) {
    return job(
        std::string(R"({"framework": {"name": "ddp"}, "workload": {"method": "lora", "lora": {)") +
        more + "}}}");
  };
  EXPECT_TRUE(lora(R"("quantization": "nf4", "prepare_kbit": true)").plan.prepares_kbit());
  EXPECT_FALSE(lora(R"("quantization": "nf4", "prepare_kbit": false)").plan.prepares_kbit());
  EXPECT_THROW(lora(R"("prepare_kbit": true)"), InputError);
  const Job engine = job(R"({"framework": {"name": "deepspeed", "zero_stage": 2}, "workload":
      {"method": "lora", "lora": {"quantization": "nf4", "prepare_kbit": true}}})");
  EXPECT_FALSE(engine.plan.prepares_kbit());  // the engine casts it back
  EXPECT_EQ(engine.diagnostics.size(), 1U);
}

// Its linears are of a class of its own, which transformers 5 passes over and peft adapts.
TEST(Job, QuantizesNoLinearOfFalcon) {
  const Job falcon = job(R"({"model": {"model_type": "falcon", "hidden_size": 256,
      "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 1000},
      "framework": {"name": "ddp"}, "workload": {"method": "lora", "lora":
      {"targets": ["all-linear"], "quantization": "nf4"}}})");
  for (const Parameter& p : falcon.model.parameters) EXPECT_FALSE(p.quantized()) << p.name;
  EXPECT_GT(falcon.model.trainable_count(), 0);
  EXPECT_EQ(falcon.diagnostics.at(0).key, "workload.lora.quantization");
}

/// What a program casts cannot be seen: with HF Trainer the larger is assumed, and said.
TEST(Job, OffloadedParametersOfATrainerAreTakenForFp32) {
  const auto host = [](const std::string& trainer, const std::string& more = "") {
    return job(R"({"trainer": ")" + trainer + R"(", "framework": {"name": "deepspeed",
        "zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu")" +
               more + "}}");
  };
  const auto type = [](const Job& j) { return regime_of(j.plan).params; };
  EXPECT_EQ(type(host("loop")), DType::bf16);
  EXPECT_EQ(type(host("hf_trainer")), DType::f32);
  EXPECT_THAT(host("hf_trainer").assumed, Contains(HasSubstr("parameters on the host: fp32")));
  const Job said = host("hf_trainer", R"(, "model_dtype": "bf16")");
  EXPECT_EQ(type(said), DType::bf16);
  EXPECT_THAT(said.assumed, Not(Contains(HasSubstr("parameters on the host"))));
}

struct PresetCase {
  const char* name;
  DType params, compute, gradients, states;
  std::optional<DType> master;
};

TEST(Precision, EveryPresetHasItsTypes) {
  constexpr DType f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16;
  for (const PresetCase& c : {PresetCase{"fp32", f32, f32, f32, f32, std::nullopt},
                              PresetCase{"bf16-pure", bf16, bf16, bf16, bf16, std::nullopt},
                              PresetCase{"fp16-pure", f16, f16, f16, f16, std::nullopt},
                              PresetCase{"bf16-autocast", f32, bf16, f32, f32, std::nullopt},
                              PresetCase{"fp16-autocast", f32, f16, f32, f32, std::nullopt},
                              PresetCase{"bf16-master", bf16, bf16, bf16, f32, f32},
                              PresetCase{"fp16-master", f16, f16, f16, f32, f32}}) {
    const Precision p =
        job(R"({"framework": "ddp", "precision": ")" + std::string(c.name) + "\"}").plan.precision;
    EXPECT_EQ(p.name, c.name);
    EXPECT_EQ(p.params, c.params) << c.name;
    EXPECT_EQ(p.compute, c.compute) << c.name;
    EXPECT_EQ(p.gradients, c.gradients) << c.name;
    EXPECT_EQ(p.optimizer_states, c.states) << c.name;
    EXPECT_EQ(p.master, c.master) << c.name;
  }
}

TEST(Precision, AnObjectNamesEveryType) {
  const Precision p = job(R"({"framework": "ddp", "precision": {"params": "float32",
    "compute": "bfloat16", "gradients": "fp32", "master": null, "optimizer_states": "bf16",
    "reduce": "half"}})")
                          .plan.precision;
  EXPECT_EQ(p.name, "custom");
  EXPECT_EQ(p.params, DType::f32);
  EXPECT_EQ(p.compute, DType::bf16);
  EXPECT_EQ(p.optimizer_states, DType::bf16);
  EXPECT_EQ(p.reduce, DType::f16);
  EXPECT_FALSE(p.master);
}

TEST(Frameworks, DdpOptionsArrive) {
  const DdpOptions ddp = job(R"({"framework": {"name": "ddp", "gradient_as_bucket_view": true,
    "zero_redundancy_optimizer": true, "bucket_cap_mb": 100}})")
                             .plan.framework.ddp;
  EXPECT_TRUE(ddp.gradient_as_bucket_view);
  EXPECT_TRUE(ddp.zero_redundancy_optimizer);
  EXPECT_EQ(ddp.bucket_cap_bytes, 100 * 1024 * 1024);
}

TEST(Frameworks, Fsdp2OptionsArrive) {
  const Fsdp2Options fsdp2 = job(R"({"framework": {"name": "fsdp2", "cpu_offload": true,
    "reshard_after_forward": false, "reduce_dtype": "fp32"}})")
                                 .plan.framework.fsdp2;
  EXPECT_FALSE(fsdp2.reshard_after_forward);
  EXPECT_TRUE(fsdp2.cpu_offload);
  EXPECT_EQ(fsdp2.reduce_dtype, DType::f32);
}

TEST(Frameworks, DeepSpeedsShortFormArrives) {
  const DeepSpeedOptions d = job(R"({"framework": {"name": "deepspeed", "zero_stage": 3,
    "offload_optimizer": "nvme", "offload_param": "cpu", "version": "0.15.1"}})")
                                 .plan.framework.deepspeed;
  EXPECT_EQ(d.zero.stage, 3);
  EXPECT_EQ(d.zero.offload_optimizer.device, OffloadDevice::nvme);
  EXPECT_EQ(d.zero.offload_param.device, OffloadDevice::cpu);
  EXPECT_EQ(d.version, (DeepSpeedVersion{0, 15, 1}));
  for (int stage = 0; stage <= 3; ++stage)
    EXPECT_EQ(
        job(R"({"framework": {"name": "deepspeed", "zero_stage": )" + std::to_string(stage) + "}}")
            .plan.framework.deepspeed.zero.stage,
        stage);
}

/// FP16_Optimizer's flat copy, which an optimizer of the program's does not get.
TEST(Frameworks, StageZeroSaysWhatDeepSpeedsOwnAdamTakes) {
  const auto said = [](const std::string& more) {
    const Job one = job(R"({"framework": {"name": "deepspeed", "ds_config": {
      "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1, )" +
                        more + "}}}");
    return std::ranges::any_of(one.diagnostics, [](const Diagnostic& d) {
      return d.key == "zero_optimization.stage" && d.severity == Severity::note;
    });
  };
  const std::string adam = R"("optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}, )";
  EXPECT_TRUE(said(adam + R"("zero_optimization": {"stage": 0})"));
  EXPECT_FALSE(said(adam + R"("zero_optimization": {"stage": 1})"));
  EXPECT_FALSE(said(R"("zero_optimization": {"stage": 0})"));
}

TEST(Frameworks, ADsConfigDecidesWhatTheJobLeavesOpen) {
  const Job j = job(R"({"framework": {"name": "deepspeed", "ds_config": {
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 2e8}, "fp16": {"enabled": true},
    "train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.5,
    "optimizer": {"type": "Lion", "params": {"lr": 1e-4}}}}})");
  EXPECT_EQ(j.plan.framework.deepspeed.zero.stage, 2);
  EXPECT_EQ(j.plan.framework.deepspeed.zero.reduce_bucket_size, 200'000'000);
  EXPECT_EQ(j.plan.precision.name, "fp16-master");
  EXPECT_EQ(j.plan.workload.micro_batch, 2);
  EXPECT_EQ(j.plan.workload.gradient_accumulation, 4);
  EXPECT_EQ(j.plan.gradient_clipping, 0.5);
  EXPECT_EQ(j.plan.optimizer.kind->name, "lion");
}

/// HF Trainer's samples are pairs, each of two sequences.
TEST(Frameworks, ADsConfigCountsPairsWhereTheTrainerDoes) {
  Json dpo = parse_json(
      R"({"model": "gpt2", "cluster": "1xA100-40GB", "trainer": "trl",
          "workload": {"kind": "rlhf", "algorithm": "dpo", "micro_batch": 2, "sequence_length": 512},
          "framework": {"ds_config": {"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}}})",
      "job.json");
  const auto sequences = [&] { return load(dpo).rlhf->roles.front().plan.workload.micro_batch; };
  EXPECT_EQ(sequences(), 4);
  Json& batch = dpo["framework"]["ds_config"]["train_micro_batch_size_per_gpu"];
  for (const Json& said : {Json("auto"), Json(2)}) {
    batch = said;
    EXPECT_EQ(sequences(), 4) << said;
  }
  batch = 4;
  EXPECT_THAT(error_text([&] { load(dpo); }),
              ::testing::HasSubstr("train_micro_batch_size_per_gpu"));
}

TEST(Frameworks, WhatOnlyOneOfThemTakesNamesIt) {
  Json job = parse_json(R"({"model": "gpt2", "cluster": "1xA100-40GB", "framework": {"ds_config":
      {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}}}})",
                        "job.json");
  const Job one = load(job);
  EXPECT_EQ(one.plan.framework.kind, FrameworkKind::deepspeed);
  EXPECT_EQ(one.plan.precision.name, "bf16-master");
  EXPECT_THAT(one.assumed, ::testing::Contains("framework: deepspeed"));
  job["framework"] = Json{{"reshard_after_forward", true}};
  EXPECT_EQ(load(job).plan.framework.kind, FrameworkKind::fsdp2);
}

TEST(Frameworks, AnAutoPrecisionIsAssumedAndCanBeSaid) {
  Json job = parse_json(R"({"model": "gpt2", "cluster": "4xA100-40GB", "framework": {"ds_config":
      {"train_micro_batch_size_per_gpu": "auto", "train_batch_size": 16,
       "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}}})",
                        "job.json");
  const Job guessed = load(job);
  EXPECT_EQ(guessed.plan.precision.name, "bf16-master");
  EXPECT_EQ(guessed.plan.workload.micro_batch, 4);
  EXPECT_THAT(guessed.assumed,
              ::testing::Contains(::testing::StartsWith("precision: bf16, which most run")));
  job["precision"] = "fp32";
  const Job said = load(job);
  EXPECT_EQ(said.plan.precision.name, "fp32");
  EXPECT_THAT(said.assumed, ::testing::Not(::testing::Contains(::testing::HasSubstr("fp32"))));
}

TEST(Optimizers, EveryNameArrives) {
  for (const OptimizerDescription* kind : optimizers()) {
    EXPECT_EQ(job(R"({"framework": "ddp", "optimizer": ")" + std::string(kind->name) + "\"}")
                  .plan.optimizer.kind,
              kind);
  }
  const Optimizer o = job(R"({"framework": "ddp", "optimizer": {"name": "sgd", "momentum": 0.9,
    "implementation": "for-loop", "lr": 0.1}})")
                          .plan.optimizer;
  EXPECT_EQ(o.momentum, 0.9);
  EXPECT_EQ(o.implementation, OptimizerImplementation::for_loop);
}

/// A patch over the base job and what its message must say.
struct BadJob {
  const char* patch;
  std::vector<const char*> says;
};

TEST(BadJobs, NameFileKeyExpectationAndNearestSpelling) {
  const BadJob bad[] = {
      {R"({"model": {"model_type": "lama"}})",
       {"model_type", "'lama'", "expected one of", "gpt2", "llama", "did you mean 'llama'?"}},
      {R"({"model": {"hidden_size": 64}})", {"model_type: missing", "expected one of"}},
      {R"({"model": 7})", {"job.json", "model"}},
      {R"({"model": null})", {"job.json: model: missing"}},
      {R"({"cluster": "8xH1000"})", {"job.json: cluster", "'h1000'", "did you mean '8xH100'?"}},
      {R"({"cluster": "4xA100-48GB"})", {"cluster", "48", "A100", "40", "80"}},
      {R"({"cluster": "0xH100"})", {"cluster"}},
      {R"({"cluster": "-4xH100"})", {"cluster"}},
      {R"({"cluster": null})", {"job.json: cluster: missing", "4xA100-40GB"}},
      {R"({"cluster": null, "clutser": "8xH100"})",
       {"job.json: clutser: unknown key", "4xA100-40GB", "did you mean 'cluster'?"}},
      {R"({"cluster": {"gpu": "H100", "gpus_per_nod": 8}})",
       {"cluster.gpus_per_nod: unknown key", "did you mean 'gpus_per_node'?"}},
      {R"({"optimiser": "adamw"})",
       {"job.json: optimiser: unknown key", "did you mean 'optimizer'?"}},
      {R"({"framework": "fdsp2"})",
       {"job.json: framework.name: unknown value 'fdsp2'", "did you mean 'fsdp2'?"}},
      {R"({"framework": {"name": "ddp", "zero_stage": 2}})",
       {"framework.zero_stage: unknown key", "gradient_as_bucket_view"}},
      {R"({"framework": "single"})", {"framework.name", "one GPU", "8"}},
      {R"({"framework": {"name": "deepspeed", "zero_stage": 4}})",
       {"framework.zero_stage: found 4", "from 0 to 3"}},
      {R"({"framework": {"name": "deepspeed", "zero_stage": 2, "ds_config": {}}})",
       {"framework.zero_stage", "one of the two"}},
      {R"({"framework": {"name": "deepspeed", "version": "latest"}})",
       {"framework.version: found 'latest'", "0.19.6"}},
      {R"({"framework": {"name": "deepspeed", "ds_config": 3}})",
       {"framework.ds_config: found 3", "a path or an object"}},
      {R"({"framework": {"name": "deepspeed", "ds_config": "/nowhere/ds.json"}})",
       {"framework.ds_config: there is no file '/nowhere/ds.json'", "the job's folder"}},
      {R"({"framework": {"name": "deepspeed", "offload_optimizer": "disk"}})",
       {"framework.offload_optimizer: unknown value 'disk'", "none, cpu, nvme"}},
      {R"({"workload": {"kind": "training"}})",
       {"workload.kind: unknown value 'training'", "one of train, inference, rlhf"}},
      {R"({"workload": {"method": "lorra"}})",
       {"workload.method: unknown value 'lorra'", "did you mean 'lora'?"}},
      {R"({"workload": {"lora": {"rank": 8}}})", {"workload.lora", "method is full"}},
      {R"({"workload": {"method": "lora", "lora": {"targets": ["query"]}}})",
       {"workload.lora.targets", "q_proj"}},
      {R"({"workload": {"method": "lora", "lora": {"targets": [1]}}})",
       {"workload.lora.targets: found 1"}},
      {R"({"workload": {"micro_batch": 0}})", {"workload.micro_batch: found 0", "from 1 to"}},
      {R"({"workload": {"micro_batch": -3}})", {"workload.micro_batch: found -3"}},
      {R"({"workload": {"micro_batch": 1.5}})", {"workload.micro_batch: found 1.5", "an integer"}},
      {R"({"workload": {"micro_batch": "4"}})", {"workload.micro_batch: found \"4\""}},
      {R"({"workload": {"micro_batch": "NaN"}})", {"workload.micro_batch: found \"NaN\""}},
      {R"({"workload": {"micro_batch": true}})", {"workload.micro_batch: found true"}},
      {R"({"workload": {"sequence_length": 99999999999999999999}})",
       {"workload.sequence_length: found", "an integer from 1 to"}},
      {R"({"workload": {"sequence_length": 1e30}})", {"workload.sequence_length: found 1e+30"}},
      {R"({"workload": [1]})", {"workload: found an array", "expected an object"}},
      {R"({"precision": "bf16-mastr"})",
       {"job.json: precision: unknown value 'bf16-mastr'", "did you mean 'bf16-master'?"}},
      {R"({"framework": "ddp", "precision": {"params": "bfloat17"}})",
       {"precision.params: unknown dtype 'bfloat17'", "fp32, bf16 or fp16"}},
      {R"({"framework": "ddp", "precision": {"params": "int8"}})", {"precision.params", "int8"}},
      {R"({"framework": "ddp", "precision": {"params": "bf16", "compute": "fp16"}})",
       {"precision.compute"}},
      {R"({"precision": "bf16-pure"})", {"precision", "master weights", "bf16-master"}},
      {R"({"optimizer": "adamv"})", {"optimizer: unknown value 'adamv'", "did you mean 'adam"}},
      {R"({"optimizer": {"name": "sgd", "momentum": 2}})", {"optimizer.momentum: found 2"}},
      {R"({"attention": "flash"})", {"attention: unknown value 'flash'", "sdpa, eager"}},
      {R"({"checkpointing": true})", {"checkpointing: found true", "a string"}},
      {R"({"gradient_clipping": -1})", {"gradient_clipping: found -1"}},
      {R"({"schema": "shardplan.job/2"})", {"schema: found 'shardplan.job/2'", "shardplan.job/1"}},
      {R"({"parallel": {"data": 3}})", {"parallel.data", "8 GPUs", "data = 8"}},
  };
  for (const BadJob& b : bad) {
    const std::string message = error(b.patch);
    for (const char* part : b.says) EXPECT_THAT(message, HasSubstr(part)) << b.patch;
  }
}

TEST(BadJobs, ShapesThatDoNotDivideNameBothKeys) {
  const auto with = [](const std::string& keys) {
    return error(R"({"model": {"model_type": "llama", )" + keys + "}}");
  };
  EXPECT_THAT(with(R"("hidden_size": 100, "num_attention_heads": 3, "num_key_value_heads": 3)"),
              AllOf(HasSubstr("hidden_size: 100 is not divisible by num_attention_heads = 3"),
                    HasSubstr("expected a multiple of 3")));
  EXPECT_THAT(with(R"("num_attention_heads": 32, "num_key_value_heads": 5)"),
              HasSubstr("num_attention_heads: 32 is not divisible by num_key_value_heads = 5"));
  EXPECT_THAT(with(R"("hidden_size": 0)"), HasSubstr("hidden_size: found 0"));
  EXPECT_THAT(with(R"("hidden_size": -64)"), HasSubstr("hidden_size: found -64"));
  EXPECT_THAT(with(R"("hidden_size": 1e400)"), HasSubstr("not valid JSON"));
  EXPECT_THAT(with(R"("hidden_size": 1e18)"), HasSubstr("hidden_size: found"));
  EXPECT_THAT(with(R"("hidden_size": [64])"), HasSubstr("hidden_size: found an array"));
  EXPECT_THAT(with(R"("num_hidden_layers": 2000000000)"),
              AllOf(HasSubstr("num_hidden_layers"), HasSubstr("at most 10000 layers")));
}

TEST(BadJobs, ContradictionsWithTheDsConfigAreErrors) {
  const auto with = [](const std::string& rest, const std::string& ds) {
    return error(rest + R"("framework": {"name": "deepspeed", "ds_config": )" +
                 R"({"zero_optimization": {"stage": 1}, )" + ds + "}}}");
  };
  EXPECT_THAT(
      with(R"({"workload": {"micro_batch": 4}, )", R"("train_micro_batch_size_per_gpu": 2)"),
      AllOf(HasSubstr("train_micro_batch_size_per_gpu"), HasSubstr("2")));
  EXPECT_THAT(with(R"({"workload": {"gradient_accumulation": 4}, )",
                   R"("train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8)"),
              AllOf(HasSubstr("gradient_accumulation"), HasSubstr("8")));
  EXPECT_THAT(with(R"({"precision": "fp16-master", )",
                   R"("train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true})"),
              HasSubstr("bf16.enabled: true differs"));
  EXPECT_THAT(with("{", R"("train_batch_size": 100, "train_micro_batch_size_per_gpu": 3)"),
              HasSubstr("train_batch_size"));
  EXPECT_THAT(with("{", R"("train_micro_batch_size_per_gpu": 1,
                           "fp16": {"enabled": true}, "bf16": {"enabled": true})"),
              AllOf(HasSubstr("fp16"), HasSubstr("bf16")));
}

TEST(BadJobs, MalformedJsonSaysLineAndColumn) {
  EXPECT_THAT(error_text([] { parse_json("{\n  \"model\": ,\n}", "job.json"); }),
              AllOf(HasSubstr("job.json: line 2, column 12"), HasSubstr("not valid JSON")));
  EXPECT_THAT(error_text([] { parse_json("", "job.json"); }), HasSubstr("line 1, column 1"));
  EXPECT_THAT(error_text([] { parse_json("{\"a\": NaN}", "job.json"); }), HasSubstr("line 1"));
  EXPECT_THAT(error_text([] { load(parse_json("[1]", "job.json")); }),
              AllOf(HasSubstr("job.json"), HasSubstr("expected an object")));
}

TEST(BadJobs, ALongValueIsCutBetweenCharacters) {
  // 59 bytes of the quoted value, then a character of two bytes: the cut must not split it.
  const std::string value = std::string(58, 'a') + "\xC3\xA9" + std::string(20, 'b');
  const std::string message =
      error_text([&] { job(R"({"workload": {"micro_batch": ")" + value + "\"}}"); });
  EXPECT_NO_THROW(static_cast<void>(Json(message).dump()));
  EXPECT_THAT(message, HasSubstr(std::string(58, 'a') + "..."));
}

TEST(Job, WarnsAboutWhatRunsButIsProbablyNotMeant) {
  const auto warnings = [](const std::string& patch) {
    std::vector<std::string> out;
    for (const Diagnostic& d : job(patch).diagnostics)
      if (d.severity == Severity::warning) out.push_back(to_string(d));
    return out;
  };
  EXPECT_THAT(
      warnings(R"({"model": {"model_type": "gpt2"}, "workload": {"sequence_length": 2048}})"),
      Contains(HasSubstr("longer than the 1024 positions")));
  EXPECT_THAT(warnings(R"({"cluster": "8xV100-32GB", "framework": "ddp",
                           "precision": "bf16-autocast"})"),
              Contains(HasSubstr("no bf16 units")));
}

/// What nobody says is what runs well there: T4 and V100 multiply in fp16.
TEST(Job, TheUsualPrecisionIsOneThatTheGpuMultiplies) {
  const auto usual = [](const char* patch) {
    const Job made = job(patch);
    for (const Diagnostic& d : made.diagnostics)
      EXPECT_THAT(to_string(d), Not(HasSubstr("no bf16 units")));
    return made.plan.precision.name;
  };
  EXPECT_EQ(usual(R"({"cluster": "8xV100-32GB", "framework": "ddp"})"), "fp16-autocast");
  EXPECT_EQ(usual(R"({"cluster": "8xV100-32GB", "framework": "deepspeed"})"), "fp16-master");
  EXPECT_EQ(usual(R"({"cluster": "1xT4", "framework": "single",
                      "workload": {"method": "lora"}})"),
            "fp16-pure");
  EXPECT_EQ(usual(R"({"cluster": "8xA100-80GB", "framework": "ddp"})"), "bf16-autocast");
}

}  // namespace
}  // namespace shardplan::job_test
