// Texts in memory that are read as files.
#include "json/given_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/diagnostic.h"
#include "json/document.h"

namespace shardplan::given_texts_test {
namespace {

using ::testing::HasSubstr;

TEST(GivenTexts, AreReadAsFilesWhileTheyAreGiven) {
  {
    const GivenTexts given(TextsByName{{"<job>", R"({"model": "gpt2"})"}});
    EXPECT_TRUE(is_readable("<job>"));
    EXPECT_EQ(read_json_file("<job>")["model"], "gpt2");
  }
  EXPECT_FALSE(is_readable("<job>"));
  EXPECT_THROW(read_json_file("<job>"), InputError);
}

TEST(GivenTexts, AreFoundBesideAnyFile) {
  const GivenTexts given(TextsByName{{"<ds_config>", "{}"}});
  EXPECT_TRUE(is_readable("some/folder/<ds_config>"));
  EXPECT_FALSE(is_readable("some/folder/ds_config"));
}

TEST(GivenTexts, NameTheFileInErrors) {
  const GivenTexts given(TextsByName{{"<job>", "{"}});
  try {
    read_json_file("<job>");
    FAIL() << "not JSON";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("<job>: line 1"));
  }
}

TEST(GivenTexts, AreOfOneThreadAndTheInnermostCount) {
  const GivenTexts outer(TextsByName{{"<a>", "1"}});
  std::thread([] { EXPECT_FALSE(is_readable("<a>")); }).join();
  {
    const GivenTexts inner(TextsByName{{"<b>", "2"}});
    EXPECT_FALSE(is_readable("<a>"));
    EXPECT_TRUE(is_readable("<b>"));
  }
  EXPECT_EQ(read_text_file("<a>"), "1");
}

TEST(GivenTexts, GoToThreadsThatWorkForThisOne) {
  const GivenTexts given(TextsByName{{"<a>", "1"}});
  const TextsByName* own = GivenTexts::current();
  std::thread([own] {
    const GivenTexts lent(own);
    EXPECT_EQ(read_text_file("<a>"), "1");
  }).join();
}

}  // namespace
}  // namespace shardplan::given_texts_test
