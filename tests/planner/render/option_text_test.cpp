// docs/reference/job.md has the tables of all options, as they are.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "json/document.h"
#include "options/tables.h"
#include "render/option_text.h"
#include "words/store.h"

namespace shardplan {
namespace {

const std::string kPage = SHARDPLAN_SOURCE_DIR "/docs/reference/job.md";

TEST(JobPage, HasTheOptionsAsTheTablesDescribeThem) {
  const std::string page = read_text_file(kPage);
  EXPECT_TRUE(page == with_option_tables(page, kPage)) << "run tools/make_job_doc.sh";
}

TEST(JobPage, MustHaveEveryTableOnce) {
  std::string page = read_text_file(kPage);
  const std::string mark = "<!-- options: fsdp2 -->";
  page.replace(page.find(mark), mark.size(), "<!-- options: fsdp -->");
  EXPECT_THROW(with_option_tables(page, kPage), InputError);
  page.replace(page.find("<!-- options: fsdp -->"), 22, "");
  EXPECT_THROW(with_option_tables(page, kPage), InputError);
}

/// The windows show labels and helps in their language (gui/models/option_field.h).
TEST(OptionCatalogue, HasWordsForFormsInEveryLanguage) {
  for (const char* language : {"ja", "ko"}) {
    const WordStore words(language);
    for (const OptionGroup& group : all_option_groups())
      for (const ListedOption& option : group.options) {
        if (option.info->label.empty()) continue;
        EXPECT_TRUE(words.phrase(option.info->label)) << language << ": " << option.info->label;
        EXPECT_TRUE(words.phrase(option.info->help)) << language << ": " << option.info->help;
      }
  }
}

TEST(OptionCatalogue, ListsKeysFlagsAndDefaults) {
  const Json json = options_json();
  bool found = false;
  for (const Json& group : json.at("groups"))
    for (const Json& option : group.at("options"))
      if (group.at("name") == "megatron" && option.at("key") == "grad_reduce_dtype") {
        found = true;
        EXPECT_EQ(option.at("flag"), "--grad-reduce-dtype");
        EXPECT_EQ(option.at("choices"), Json({"fp32", "bf16", "fp16"}));
        EXPECT_EQ(option.at("default"), "fp32");
      }
  EXPECT_TRUE(found);
  for (const char* words : {"grad_reduce_dtype", "--grad-reduce-dtype",
                            "type of the gradient buffers: fp32, bf16 or fp16"})
    EXPECT_NE(options_text().find(words), std::string::npos) << words;
}

}  // namespace
}  // namespace shardplan
