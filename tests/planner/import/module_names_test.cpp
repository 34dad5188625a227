// Expressions over module names, as real files have them.
#include <gtest/gtest.h>

#include "import/module_names.h"

namespace shardplan::importing::module_names_test {
namespace {

using Words = std::vector<std::string>;

TEST(ModuleNames, AreTheLastPartsOfAllAlternatives) {
  EXPECT_EQ(last_names("q_proj"), Words{"q_proj"});
  EXPECT_EQ(last_names(R"(.*\.layers\.\d+\.self_attn\.(q|k|v)_proj$)"),
            (Words{"q_proj", "k_proj", "v_proj"}));
  EXPECT_EQ(last_names(R"(model.layers.[\d]+.(mlp|cross_attn|self_attn).(up|down)_proj)"),
            (Words{"up_proj", "down_proj"}));
  EXPECT_EQ(last_names(R"(^(?!.*visual).*\.)"), Words{});
}

TEST(ModuleNames, OfAlternativesThatAreWholePaths) {
  EXPECT_EQ(
      last_names(
          R"((model\.language_model\.layers\.\d+\.(mlp\.(gate|up)_proj|self_attn\.(q|o)_proj)|model\.visual\.merger\.linear_1))"),
      (Words{"gate_proj", "up_proj", "q_proj", "o_proj", "linear_1"}));
}

TEST(ModuleNames, OfSetsOfLetters) {
  EXPECT_EQ(last_names(R"(model\.(mlp\.fc[12]|projector\.linear_[0-9]))"), Words{});
  EXPECT_EQ(last_names(R"(model\.(mlp\.fc[12]|projector\.linear_[ab]))"),
            (Words{"fc1", "fc2", "linear_a", "linear_b"}));
}

TEST(ModuleNames, OfPatternsOfFileNames) {
  EXPECT_EQ(last_names("*q_proj"), Words{"q_proj"});
  EXPECT_EQ(last_names("model.layers.*.self_attn.v_proj"), Words{"v_proj"});
  EXPECT_EQ(last_names("*"), Words{});
}

TEST(ModuleNames, ThatAreNotWrittenOutAreNone) {
  for (const char* word :
       {"q_pro.*", "((q_proj", "a|b)", "", "[a-c]_proj", "fc[12]+", "fc[12", "(a|b.*)"})
    EXPECT_EQ(last_names(word), Words{}) << word;
  EXPECT_EQ(last_names(std::string(100, '(')), Words{});
  std::string many;
  for (int i = 0; i < 20; ++i) many += "(a|b)";
  EXPECT_EQ(last_names(many), Words{});
}

}  // namespace
}  // namespace shardplan::importing::module_names_test
