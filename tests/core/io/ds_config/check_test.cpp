#include "ds_config_testing.h"
#include "load/ds_config/schema.h"
#include "load/ds_config/values.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DsCheck, UnknownKeysInTypedBlocksAreRefusedWithTheNearestSpelling) {
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stgae": 2}})"),
              ElementsAre("ds.json: zero_optimization.stgae: unknown key, which DeepSpeed refuses "
                          "in this block; did you mean 'stage'?"));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"offload_param": {"devise": "cpu"}}})"),
              ElementsAre(HasSubstr("did you mean 'device'?")));
}

TEST(DsCheck, UnknownKeysAtTheTopAndInPlainBlocksAreIgnoredByDeepSpeed) {
  EXPECT_THAT(warnings_of(R"({"gradient_cliping": 0.5})"),
              ElementsAre("ds.json: gradient_cliping: unknown key, which DeepSpeed ignores; did "
                          "you mean 'gradient_clipping'?"));
  EXPECT_EQ(options_of(R"({"gradient_cliping": 0.5})").gradient_clipping, 1.0);
  EXPECT_THAT(warnings_of(R"({"activation_checkpointing": {"partitioned_activations": true}})"),
              ElementsAre(HasSubstr("did you mean 'partition_activations'?")));
  EXPECT_THAT(errors_of(R"({"gradient_cliping": 0.5})"), IsEmpty());
}

TEST(DsCheck, AKeyInTheWrongBlockIsSentToTheRightOne) {
  EXPECT_THAT(
      warnings_of(R"({"stage3_max_live_parameters": 5})"),
      ElementsAre(HasSubstr("did you mean 'zero_optimization.stage3_max_live_parameters'?")));
}

TEST(DsCheck, UnknownArgumentsAreHandedOn) {
  EXPECT_THAT(warnings_of(R"({"optimizer": {"type": "AdamW", "params": {"banana": 1}}})"),
              ElementsAre(HasSubstr("passed on and may be refused")));
  EXPECT_THAT(warnings_of(R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}})"),
              IsEmpty());
}

TEST(DsCheck, IntegersMayHaveAnExponentButNoFraction) {
  EXPECT_EQ(options_of(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 2e8}})")
                .zero.reduce_bucket_size,
            200'000'000);
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"reduce_bucket_size": 1.5}})"),
              ElementsAre("ds.json: zero_optimization.reduce_bucket_size: found 1.5; expected an "
                          "integer of at least 0"));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"reduce_bucket_size": 1e300}})"),
              ElementsAre(HasSubstr("an integer")));
}

TEST(DsCheck, TypedBlocksConvertWhatPydanticConverts) {
  const std::string text = R"({"bf16": {"enabled": "true"},
      "zero_optimization": {"stage": "2", "reduce_bucket_size": "200", "overlap_comm": 1}})";
  EXPECT_THAT(errors_of(text), IsEmpty());
  EXPECT_THAT(warnings_of(text), Contains(HasSubstr("\"true\" is read as true")));
  const DeepSpeedOptions options = options_of(text);
  EXPECT_EQ(options.zero.stage, 2);
  EXPECT_EQ(options.zero.reduce_bucket_size, 200);
  EXPECT_TRUE(options.zero.overlap_comm);
  EXPECT_EQ(options.engine_dtype, DType::bf16);
  EXPECT_THAT(errors_of(R"({"bf16": {"enabled": "perhaps"}})"),
              ElementsAre(HasSubstr("expected true or false")));
}

TEST(DsCheck, PlainKeysConvertNothing) {
  EXPECT_THAT(errors_of(R"({"train_micro_batch_size_per_gpu": "4"})"),
              Contains(HasSubstr("found \"4\"; expected an integer of at least 1")));
  EXPECT_THAT(errors_of(R"({"zero_allow_untested_optimizer": "false"})"),
              ElementsAre(HasSubstr("expected true or false")));
}

TEST(DsCheck, LossScalesTakeNoBooleans) {
  EXPECT_THAT(errors_of(R"({"fp16": {"loss_scale": true}})"), ElementsAre(HasSubstr("a number")));
  EXPECT_THAT(errors_of(R"({"fp16": {"hysteresis": true}})"), IsEmpty());
}

TEST(DsCheck, RangesAndChoicesAreThoseOfTheSchema) {
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 4}})"),
              ElementsAre("ds.json: zero_optimization.stage: found 4; expected one of 0, 1, 2, 3"));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 3, "offload_optimizer":
                          {"device": "cpu", "ratio": 1.5}}})"),
              ElementsAre(HasSubstr("a number from 0 to 1")));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"offload_optimizer": {"device": "nvm"}}})"),
              ElementsAre(HasSubstr("did you mean 'nvme'?")));
  EXPECT_THAT(errors_of(R"({"communication_data_type": "FP16"})"), IsEmpty());
  EXPECT_EQ(options_of(R"({"communication_data_type": "FP16"})").communication_dtype, DType::f16);
  EXPECT_THAT(errors_of(R"({"communication_data_type": "int8"})"),
              ElementsAre(HasSubstr("one of fp16, bf16, fp32")));
  EXPECT_THAT(errors_of(R"({"train_micro_batch_size_per_gpu": 0})"),
              Contains(HasSubstr("found 0; expected an integer of at least 1")));
}

TEST(DsCheck, ListsAndBlocksHaveTheirTypes) {
  EXPECT_THAT(errors_of(R"({"optimizer": {"type": "AdamW", "params": {"betas": 0.9}}})"),
              ElementsAre(HasSubstr("an array of numbers")));
  EXPECT_THAT(errors_of(R"({"fp16": true})"),
              ElementsAre("ds.json: fp16: found true; expected an object"));
  EXPECT_THAT(errors_of(R"({"tensor_parallel": {"dtype": "bf16"}})"),
              ElementsAre(HasSubstr("Python object")));
}

TEST(DsCheck, NullMeansNotGivenWhereItMay) {
  EXPECT_THAT(errors_of(R"({"communication_data_type": null, "aio": null,
                          "zero_optimization": {"overlap_comm": null, "offload_param": null}})"),
              IsEmpty());
  EXPECT_THAT(errors_of(R"({"gradient_clipping": null})"), ElementsAre(HasSubstr("found null")));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": null}})"),
              ElementsAre(HasSubstr("found null")));
  EXPECT_THAT(errors_of(R"({"fp16": null})"), ElementsAre(HasSubstr("an object")));
  EXPECT_THAT(warnings_of(R"({"activation_checkpointing": {"cpu_checkpointing": null}})"),
              ElementsAre(HasSubstr("null takes the place of the default")));
}

TEST(DsCheck, OverlapFollowsTheStageUnlessSaid) {
  EXPECT_FALSE(options_of(R"({"zero_optimization": {"stage": 2}})").zero.overlap_comm);
  EXPECT_TRUE(options_of(R"({"zero_optimization": {"stage": 3}})").zero.overlap_comm);
  EXPECT_TRUE(
      options_of(R"({"zero_optimization": {"stage": 3, "overlap_comm": null}})").zero.overlap_comm);
  EXPECT_FALSE(options_of(R"({"zero_optimization": {"stage": 3, "overlap_comm": false}})")
                   .zero.overlap_comm);
}

TEST(DsCheck, NoValueOfAnyKeyStopsTheCheck) {
  const Json values[] = {nullptr,
                         true,
                         -1,
                         1e300,
                         "auto",
                         "",
                         "fp16",
                         Json::array({1, "x"}),
                         Json::object({{"enabled", "auto"}})};
  for (const std::string& path : ds_schema().paths()) {
    for (const Json& value : values) {
      Json config = Json::object();
      set_value(config, path, value);
      set_value(config, "zero_optimization.stage", 3);
      EXPECT_NO_THROW(check_ds_config(config, "ds.json", on_ranks(8))) << config.dump();
      const std::size_t dot = path.find('.');
      if (dot == std::string::npos) continue;
      Json block = Json::object();
      block[path.substr(0, dot)] = value;
      EXPECT_NO_THROW(check_ds_config(block, "ds.json", on_ranks(8))) << block.dump();
    }
  }
}

TEST(DsCheck, AFileThatIsNoObjectIsRefused) {
  EXPECT_THROW(check_ds_config(Json::array(), "ds.json", {}), InputError);
}

TEST(DsCheck, AllErrorsAreCollectedAndTheFirstIsThrown) {
  const std::string text = R"({"zero_optimization": {"stage": 9, "stgae": 1}, "fp16": 1})";
  EXPECT_EQ(errors_of(text).size(), 3);
  try {
    load_ds_config(parse_json(text, "ds.json"), "ds.json", on_ranks(8));
    FAIL() << "no error";
  } catch (const InputError& e) {
    EXPECT_EQ(e.diagnostic().key, "zero_optimization.stage");
  }
}

TEST(DsDeprecated, OldOffloadFlagsBecomeBlocks) {
  const std::string text = R"({"zero_optimization": {"stage": 3, "cpu_offload": true,
                              "cpu_offload_param": true}})";
  EXPECT_EQ(options_of(text).zero.offload_optimizer.device, OffloadDevice::cpu);
  EXPECT_EQ(options_of(text).zero.offload_param.device, OffloadDevice::cpu);
  EXPECT_THAT(warnings_of(text),
              Contains("ds.json: zero_optimization.cpu_offload: deprecated; expected "
                       "'zero_optimization.offload_optimizer'"));
  EXPECT_EQ(options_of(R"({"zero_optimization": {"stage": 2, "cpu_offload": false}})")
                .zero.offload_optimizer.device,
            OffloadDevice::none);
}

TEST(DsDeprecated, OldAndNewTogetherAreRefused) {
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 2, "cpu_offload": true,
                          "offload_optimizer": {"device": "cpu"}}})"),
              ElementsAre(HasSubstr("together with its replacement")));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 3,
                          "stage3_gather_fp16_weights_on_model_save": true,
                          "stage3_gather_16bit_weights_on_model_save": true}})"),
              ElementsAre(HasSubstr("together with its replacement")));
}

TEST(DsDeprecated, RenamedKeysAndSecondNamesArriveUnderTheNewName) {
  EXPECT_TRUE(options_of(R"({"zero_optimization": {"stage": 3,
                          "stage3_gather_fp16_weights_on_model_save": true}})")
                  .zero.gather_16bit_weights_on_model_save);
  const std::string alias = R"({"zero_optimization": {"stage": 3, "prefetch_bucket_size": 7}})";
  EXPECT_EQ(options_of(alias).zero.prefetch_bucket_size, 7);
  EXPECT_THAT(warnings_of(alias), IsEmpty());
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 3, "prefetch_bucket_size": 7,
                          "stage3_prefetch_bucket_size": 8}})"),
              ElementsAre(HasSubstr("another name of")));
}

TEST(DsDeprecated, TheBooleanFormIsStageOne) {
  const std::string text = R"({"zero_optimization": true, "allgather_size": 1000})";
  EXPECT_EQ(options_of(text).zero.stage, 1);
  EXPECT_EQ(options_of(text).zero.allgather_bucket_size, 1000);
  EXPECT_THAT(warnings_of(text), Contains(HasSubstr("the boolean form is deprecated")));
  EXPECT_EQ(options_of(R"({"zero_optimization": false})").zero.stage, 0);
  EXPECT_THAT(warnings_of(R"({"allgather_size": 1000})"),
              ElementsAre(HasSubstr("is read only beside")));
}

TEST(DsDeprecated, Bfloat16IsReadUnlessBf16IsThere) {
  EXPECT_EQ(options_of(R"({"bfloat16": {"enabled": true}})").engine_dtype, DType::bf16);
  EXPECT_EQ(
      options_of(R"({"bfloat16": {"enabled": true}, "bf16": {"enabled": false}})").engine_dtype,
      DType::f32);
  EXPECT_THAT(warnings_of(R"({"bfloat16": {"enabled": true}, "bf16": {"enabled": false}})"),
              ElementsAre(HasSubstr("ignored, because 'bf16' is there too")));
}

TEST(DsDeprecated, KeysWithoutEffectAndOldBlocksAreNamed) {
  EXPECT_THAT(
      warnings_of(R"({"zero_optimization": {"stage": 2, "cpu_offload_use_pin_memory": true}})"),
      ElementsAre(HasSubstr("deprecated and without effect")));
  EXPECT_THAT(warnings_of(R"({"curriculum_learning": {"enabled": false}})"),
              ElementsAre(HasSubstr("an old block that is still read")));
}

}  // namespace
}  // namespace shardplan
