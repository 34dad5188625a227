// Whether products in fewer bits pay: a warning with figures where they do not.
#include "questions/recipe_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "load/calibration.h"
#include "load/hardware.h"
#include "questions/estimate_job.h"

namespace shardplan::recipe_price_test {
namespace {

std::optional<Diagnostic> warning(const char* model, int tokens, Json more) {
  const HardwareCatalog hardware = load_hardware_catalog();
  Json json{{"model", model},
            {"cluster", "1xH100"},
            {"framework", "single"},
            {"checkpointing", "full"},
            {"precision", {{"preset", "bf16-pure"}, {"linear", "fp8-tensorwise"}}},
            {"workload", {{"sequence_length", tokens}, {"micro_batch", 2}}}};
  json.update(more);
  const Job job = load_job(json, "job.json", {.hardware = &hardware});
  const Calibration calibration = load_calibration();
  return recipe_that_loses(job, calibration, estimate_job(job, calibration));
}

TEST(RecipePrice, SmallLayersLoseAndTheWarningHasBothFigures) {
  const auto said = warning("llama-3.2-1b", 512, Json::object());
  ASSERT_TRUE(said);
  EXPECT_EQ(said->key, "precision.linear");
  EXPECT_THAT(std::string(said->message), testing::HasSubstr("fp8-tensorwise loses at this size"));
  EXPECT_EQ(said->message.values.size(), 5U);
  EXPECT_NE(said->message.values[1].text, said->message.values[2].text);
}

TEST(RecipePrice, IsNotAskedOfPlainProducts) {
  EXPECT_FALSE(warning("llama-3.2-1b", 512, {{"precision", "bf16-pure"}}));
}

/// Wide layers over many tokens, their casts fused.
TEST(RecipePrice, WideLayersGain) {
  EXPECT_FALSE(warning("llama-3-8b", 8192, {{"compile", true}}));
}

}  // namespace
}  // namespace shardplan::recipe_price_test
