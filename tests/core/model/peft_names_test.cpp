// Modules that peft trains whole, and parts that train beside adapters.
#include "model/peft_names.h"

#include <gtest/gtest.h>

#include "build_testing.h"
#include "load/model.h"

namespace shardplan::peft_names_test {
namespace {

TEST(SavedModules, AreThoseWhoseNamesEndSo) {
  const auto part = [](std::string_view tensor) {
    return saved_module({"lm_head", "mlp"}, false, tensor).value_or(0);
  };
  EXPECT_EQ(part("lm_head.weight"), 7U);
  EXPECT_EQ(part("model.layers.{}.mlp.up_proj.weight"), 19U);
  EXPECT_EQ(part("model.layers.{}.self_attn.q_proj.weight"), 0U);
  EXPECT_FALSE(saved_module({}, false, "score.weight"));
  EXPECT_EQ(saved_module({}, true, "score.weight"), 5U);
}

TEST(Parts, AreWholeWordsBetweenPoints) {
  EXPECT_TRUE(is_inside({"visual"}, "model.visual.blocks.{}.mlp.weight"));
  EXPECT_FALSE(is_inside({"visual"}, "model.visuals.weight"));
  EXPECT_FALSE(is_inside({}, "model.visual"));
}

TEST(Parts, TrainBesideAdaptersThatTheyDoNotHave) {
  BuildOptions options;
  options.images.per_sample = 1;
  options.lora.emplace();
  options.lora->targets = {"all-linear"};
  const auto build = [&] { return load_model(Json("qwen2-vl-2b"), {}, options); };
  const Model everywhere = build();
  options.lora->whole = {"visual"};
  const Model beside = build();
  std::int64_t tower = 0;
  beside.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.name.find("visual") == std::string::npos) return;
    EXPECT_FALSE(p.adapter) << p.name;
    EXPECT_TRUE(p.trainable) << p.name;
    tower += repeat * p.numel;
  });
  EXPECT_GT(tower, 500'000'000);
  EXPECT_GT(beside.trainable_count(), tower);
  EXPECT_GT(everywhere.tensor_count(), beside.tensor_count());
}

}  // namespace
}  // namespace shardplan::peft_names_test
