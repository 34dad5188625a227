#include "ds_config_testing.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_batch(const DeepSpeedOptions& o, std::int64_t train, std::int64_t micro,
                  std::int64_t steps) {
  EXPECT_EQ(o.train_batch_size, train);
  EXPECT_EQ(o.micro_batch, micro);
  EXPECT_EQ(o.gradient_accumulation, steps);
}

TEST(DsBatch, TwoGiveTheThirdAndOneMeansOneStep) {
  expect_batch(options_of(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2})"), 64,
               2, 4);
  expect_batch(options_of(R"({"train_batch_size": 64, "gradient_accumulation_steps": 4})"), 64, 2,
               4);
  expect_batch(
      options_of(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})"), 64,
      2, 4);
  expect_batch(options_of(R"({"train_batch_size": 64})"), 64, 8, 1);
  expect_batch(options_of(R"({"train_micro_batch_size_per_gpu": 2})"), 16, 2, 1);
}

TEST(DsBatch, AProductThatDoesNotCloseShowsTheNumbers) {
  EXPECT_THAT(errors_of(R"({"train_batch_size": 2048, "train_micro_batch_size_per_gpu": 4,
                          "gradient_accumulation_steps": 64})",
                        on_ranks(4)),
              ElementsAre("ds.json: train_batch_size: 2048 is not 4 micro-batch x 64 accumulation "
                          "x 4 ranks = 1024; expected a product that closes"));
  // 100 / 8 = 12 per rank by integer division, and 12 * 8 is not 100.
  EXPECT_THAT(errors_of(R"({"train_batch_size": 100})"),
              ElementsAre(HasSubstr("100 is not 12 micro-batch x 1 accumulation x 8 ranks = 96")));
  // Fewer sequences than ranks: the quotient is 0.
  EXPECT_THAT(errors_of(R"({"train_batch_size": 4})"),
              ElementsAre(HasSubstr("is not 0 micro-batch")));
  EXPECT_THAT(errors_of(R"({"train_batch_size": 2048, "train_micro_batch_size_per_gpu": 4,
                          "gradient_accumulation_steps": 64})"),
              IsEmpty());
}

TEST(DsBatch, SequenceParallelRanksShareTheirSequences) {
  const std::string text = R"({"train_micro_batch_size_per_gpu": 2, "sequence_parallel_size": 4})";
  expect_batch(options_of(text), 4, 2, 1);
  EXPECT_EQ(options_of(text).sequence_parallel, 4);
  EXPECT_THAT(errors_of(R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2,
                          "gradient_accumulation_steps": 1, "sequence_parallel_size": 4})"),
              ElementsAre(HasSubstr("x 2 ranks (8 / 4 sequence-parallel) = 4")));
  EXPECT_THAT(errors_of(R"({"sequence_parallel_size": 3})"),
              ElementsAre("ds.json: sequence_parallel_size: 3 does not divide the 8 ranks; "
                          "expected a divisor of 8"));
}

TEST(DsBatch, ABatchSizeMustBeGiven) {
  const Json config = parse_json(R"({"gradient_accumulation_steps": 2})", "ds.json");
  EXPECT_THAT(findings_of(check_ds_config(config, "ds.json", on_ranks(8)), Severity::error),
              ElementsAre(HasSubstr("neither the batch size nor the micro-batch size")));
}

TEST(DsBatch, TheJobsBatchStandsInForAFileWithoutOne) {
  DsConfigContext context = on_ranks(8);
  context.micro_batch = 3;
  context.gradient_accumulation = 2;
  const auto result = check_ds_config(Json::object(), "ds.json", context);
  expect_batch(result.options, 48, 3, 2);
  EXPECT_THAT(findings_of(result, Severity::note), Contains(HasSubstr("micro-batch of 3")));
  expect_batch(options_of(R"({"train_micro_batch_size_per_gpu": 5})", context), 40, 5, 1);
}

TEST(DsBatch, WithoutAWorldTheTriangleStaysOpen) {
  const DeepSpeedOptions options = options_of(R"({"train_micro_batch_size_per_gpu": 2})", {});
  EXPECT_EQ(options.train_batch_size, std::nullopt);
  EXPECT_EQ(options.micro_batch, 2);
  EXPECT_EQ(options.gradient_accumulation, 1);
}

TEST(DsBatch, ElasticityTakesTheBatchOver) {
  EXPECT_THAT(errors_of(R"({"elasticity": {"enabled": true}, "train_batch_size": 8})"),
              ElementsAre(HasSubstr("elasticity refuses explicit batch sizes")));
  const std::string ignored = R"({"elasticity": {"enabled": true,
      "ignore_non_elastic_batch_info": true}, "train_batch_size": 8})";
  EXPECT_THAT(errors_of(ignored), IsEmpty());
  EXPECT_THAT(warnings_of(ignored), ElementsAre(HasSubstr("are ignored")));
  EXPECT_EQ(options_of(ignored).micro_batch, std::nullopt);
  EXPECT_THAT(errors_of(R"({"elasticity": {"enabled": false}, "train_batch_size": 8})"), IsEmpty());
}

TEST(DsBatch, ProductsThatDoNotFit64BitsAreErrors) {
  EXPECT_THAT(errors_of(R"({"train_micro_batch_size_per_gpu": 4e18,
                          "gradient_accumulation_steps": 4})"),
              ElementsAre(HasSubstr("64 bits")));
}

}  // namespace
}  // namespace shardplan
