#include <algorithm>

#include "ds_config_testing.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DsConfigContext under(AutoResolver resolver, std::optional<std::int64_t> hidden_size = 4096) {
  DsConfigContext context = on_ranks(8);
  context.auto_resolver = resolver;
  context.hidden_size = hidden_size;
  return context;
}

const ResolvedAuto* resolved(const DsConfigResult& result, const std::string& path) {
  const auto it = std::find_if(result.autos.begin(), result.autos.end(),
                               [&](const ResolvedAuto& a) { return a.path == path; });
  return it == result.autos.end() ? nullptr : &*it;
}

constexpr const char* kSizes = R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})";

TEST(DsAuto, HiddenSizeSetsTheBucketsUnderTrainerAndAccelerate) {
  for (const AutoResolver resolver : {AutoResolver::hf_trainer, AutoResolver::accelerate}) {
    const auto result = checked(kSizes, under(resolver));
    EXPECT_EQ(result.options.zero.reduce_bucket_size, 16'777'216);
    EXPECT_EQ(result.options.zero.prefetch_bucket_size, 15'099'494);
    EXPECT_EQ(result.options.zero.param_persistence_threshold, 40'960);
    ASSERT_NE(resolved(result, "zero_optimization.reduce_bucket_size"), nullptr);
    EXPECT_THAT(resolved(result, "zero_optimization.reduce_bucket_size")->rule,
                HasSubstr("hidden_size^2"));
    EXPECT_THAT(result.diagnostics, IsEmpty());
  }
}

TEST(DsAuto, NobodyDropsThemToTheDefaults) {
  const auto result = checked(kSizes, under(AutoResolver::none));
  EXPECT_EQ(result.options.zero.reduce_bucket_size, 500'000'000);
  EXPECT_EQ(result.options.zero.prefetch_bucket_size, 50'000'000);
  EXPECT_EQ(result.options.zero.param_persistence_threshold, 100'000);
  EXPECT_EQ(resolved(result, "zero_optimization.reduce_bucket_size")->rule,
            "dropped: DeepSpeed's default");
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsAuto, WithoutAHiddenSizeTheDefaultIsAssumedAndSaid) {
  EXPECT_THAT(notes_of(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}})",
                       under(AutoResolver::hf_trainer, std::nullopt)),
              ElementsAre("ds.json: zero_optimization.reduce_bucket_size: \"auto\" needs the "
                          "model's hidden size, which is not known; DeepSpeed's default 500000000 "
                          "is assumed"));
}

TEST(DsAuto, StageThreeKeysAreFilledOnlyAtStageThree) {
  const std::string text =
      R"({"zero_optimization": {"stage": 2, "stage3_prefetch_bucket_size": "auto"}})";
  const auto result = checked(text, under(AutoResolver::hf_trainer));
  EXPECT_EQ(result.options.zero.prefetch_bucket_size, 50'000'000);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsAuto, TopLevelScalarsNeedAResolver) {
  EXPECT_THAT(errors_of(R"({"gradient_clipping": "auto"})"),
              ElementsAre("ds.json: gradient_clipping: \"auto\" is not resolved by DeepSpeed "
                          "itself; expected a value, or a run under HF Trainer"));
  DsConfigContext context = under(AutoResolver::hf_trainer);
  context.trainer.max_grad_norm = 0.5;
  EXPECT_EQ(options_of(R"({"gradient_clipping": "auto"})", context).gradient_clipping, 0.5);
  // accelerate knows no max_grad_norm
  context.auto_resolver = AutoResolver::accelerate;
  EXPECT_EQ(options_of(R"({"gradient_clipping": "auto"})", context).gradient_clipping, 1.0);
  EXPECT_THAT(errors_of(R"({"prescale_gradients": "auto"})", context),
              ElementsAre(HasSubstr("resolved neither by accelerate nor by DeepSpeed")));
}

TEST(DsAuto, TheBatchComesFromTheTrainingArguments) {
  constexpr const char* kBatch = R"({"train_batch_size": "auto",
      "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})";
  DsConfigContext context = under(AutoResolver::hf_trainer);
  context.trainer.per_device_train_batch_size = 4;
  context.trainer.gradient_accumulation_steps = 2;
  const auto result = checked(kBatch, context);
  EXPECT_EQ(result.options.train_batch_size, 64);
  EXPECT_EQ(result.options.micro_batch, 4);
  EXPECT_EQ(result.options.gradient_accumulation, 2);
  EXPECT_THAT(result.diagnostics, IsEmpty());
  // TrainingArguments' own defaults: 8 and 1; the job's batch goes before them
  EXPECT_EQ(options_of(kBatch, under(AutoResolver::hf_trainer)).train_batch_size, 64);
  DsConfigContext job = under(AutoResolver::accelerate);
  job.micro_batch = 3;
  EXPECT_EQ(options_of(kBatch, job).train_batch_size, 24);
  EXPECT_EQ(errors_of(kBatch).size(), 4);  // three "auto", and no batch left
}

TEST(DsAuto, OptimizerAndSchedulerComeFromTheTrainingArguments) {
  constexpr const char* kText = R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto",
      "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
      "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto",
      "warmup_max_lr": "auto", "warmup_num_steps": "auto", "total_num_steps": "auto"}}})";
  DsConfigContext context = under(AutoResolver::hf_trainer);
  context.trainer.learning_rate = 2e-5;
  context.trainer.warmup_steps = 100;
  context.trainer.total_steps = 1000;
  const auto result = checked(kText, context);
  EXPECT_THAT(result.diagnostics, IsEmpty());
  EXPECT_EQ(resolved(result, "optimizer.params.lr")->value, 2e-5);
  EXPECT_EQ(resolved(result, "optimizer.params.betas")->value, Json::array({0.9, 0.999}));
  EXPECT_EQ(resolved(result, "scheduler.params.warmup_min_lr")->value, 0);
  EXPECT_EQ(resolved(result, "scheduler.params.warmup_num_steps")->value, 100);
  EXPECT_EQ(resolved(result, "scheduler.params.total_num_steps")->value, 1000);
  EXPECT_EQ(errors_of(kText).size(), 9);  // eight "auto", and total_num_steps missing
}

TEST(DsAuto, ARequiredArgumentThatIsResolvedAtStartUpIsNotMissing) {
  const auto result = checked(R"({"scheduler": {"type": "WarmupDecayLR",
      "params": {"total_num_steps": "auto"}}})",
                              under(AutoResolver::hf_trainer));
  EXPECT_THAT(findings_of(result, Severity::error), IsEmpty());
  EXPECT_THAT(findings_of(result, Severity::note),
              ElementsAre(::testing::HasSubstr("needs the number of training steps")));
}

TEST(DsAuto, PrecisionComesFromTheTrainingArguments) {
  constexpr const char* kText = R"({"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}})";
  DsConfigContext context = under(AutoResolver::hf_trainer);
  context.trainer.bf16 = true;
  EXPECT_EQ(options_of(kText, context).engine_dtype, DType::bf16);
  // Arguments that do not say so run in fp32; where there are none, most run in bf16.
  context.trainer.bf16.reset();
  context.trainer_given = true;
  EXPECT_EQ(options_of(kText, context).engine_dtype, DType::f32);
  EXPECT_EQ(options_of(kText, under(AutoResolver::hf_trainer)).engine_dtype, DType::bf16);
  // Dropped inside typed blocks when nobody resolves it.
  EXPECT_EQ(options_of(kText).engine_dtype, DType::f32);
}

/// What HF Trainer's arguments must be where the file says the rest: others would be refused.
TEST(DsAuto, TheBatchFollowsFromTheFilesOwnNumbers) {
  const auto of = [](const char* text) {
    return options_of(text, under(AutoResolver::hf_trainer));
  };
  const DeepSpeedOptions micro = of(R"({"train_batch_size": 64,
      "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 2})");
  EXPECT_EQ(micro.micro_batch, 4);
  const DeepSpeedOptions steps = of(R"({"train_batch_size": 64,
      "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto"})");
  EXPECT_EQ(steps.gradient_accumulation, 2);
  const DeepSpeedOptions both = of(R"({"train_batch_size": 64,
      "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})");
  EXPECT_EQ(both.micro_batch, 8);
  EXPECT_EQ(both.gradient_accumulation, 1);
  const DeepSpeedOptions product = of(R"({"train_batch_size": "auto",
      "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 5})");
  EXPECT_EQ(product.train_batch_size, 120);
}

TEST(DsAuto, APrecisionThatNobodyToldIsBf16AndSaidToBeAGuess) {
  const auto type = [](const char* text) {
    const auto result = checked(text, under(AutoResolver::hf_trainer));
    for (const ResolvedAuto& a : result.autos) EXPECT_EQ(a.guessed, a.value == true) << text;
    EXPECT_THAT(findings_of(result, Severity::error), IsEmpty()) << text;
    return result.options.engine_dtype.value_or(DType::f32);
  };
  EXPECT_EQ(type(R"({"bf16": {"enabled": "auto"}})"), DType::bf16);
  EXPECT_EQ(type(R"({"fp16": {"enabled": "auto"}})"), DType::f16);
  EXPECT_EQ(type(R"({"fp16": {"enabled": "auto"}, "bf16": {"enabled": false}})"), DType::f16);
  EXPECT_EQ(type(R"({"fp16": {"enabled": true}, "bf16": {"enabled": "auto"}})"), DType::f16);
  EXPECT_EQ(type(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}})"), DType::bf16);
  EXPECT_EQ(type(R"({"gradient_clipping": "auto"})"), DType::bf16);  // accelerate adds the block
  DsConfigContext fp32 = under(AutoResolver::hf_trainer);
  fp32.trainer.bf16 = fp32.trainer.fp16 = false;
  EXPECT_EQ(options_of(R"({"gradient_clipping": "auto"})", fp32).engine_dtype, std::nullopt);
}

TEST(DsAuto, AccelerateSwitchesPrintingOff) {
  EXPECT_THAT(errors_of(R"({"steps_per_print": "auto"})", under(AutoResolver::accelerate)),
              IsEmpty());
}

TEST(DsAuto, HfTrainerRefusesValuesThatContradictItsArguments) {
  DsConfigContext context = under(AutoResolver::hf_trainer);
  context.trainer.learning_rate = 2e-5;
  context.trainer.per_device_train_batch_size = 4;
  EXPECT_THAT(errors_of(R"({"train_micro_batch_size_per_gpu": 2})", context),
              ElementsAre("ds.json: train_micro_batch_size_per_gpu: 2 differs from the training "
                          "arguments, which HF Trainer refuses; expected 4 or \"auto\""));
  EXPECT_THAT(errors_of(R"({"train_micro_batch_size_per_gpu": 4,
                          "optimizer": {"type": "Adam", "params": {"lr": 2e-5}}})",
                        context),
              IsEmpty());
  context.auto_resolver = AutoResolver::accelerate;
  EXPECT_THAT(errors_of(R"({"train_micro_batch_size_per_gpu": 2})", context), IsEmpty());
}

TEST(DsAuto, ValuesThatAreCalledAutoStay) {
  const std::string text = R"({"zero_optimization": {"stage": 2, "offload_optimizer":
      {"device": "cpu"}, "zenflow": {"select_strategy": "auto", "select_interval": "auto"}},
      "pipeline": {"stages": "auto"}, "expert_parallel": {"top_k": "auto"}})";
  EXPECT_THAT(errors_of(text), IsEmpty());
  EXPECT_THAT(checked(text).autos, IsEmpty());
}

TEST(DsAuto, PlainBlocksDoNotDropIt) {
  EXPECT_THAT(errors_of(R"({"activation_checkpointing": {"number_checkpoints": "auto"}})"),
              ElementsAre(HasSubstr("not resolved by DeepSpeed itself")));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 3, "sub_group_size": "auto"}})"),
              IsEmpty());
}

}  // namespace
}  // namespace shardplan
