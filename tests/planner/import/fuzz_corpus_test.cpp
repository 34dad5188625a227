// The inputs that the fuzzer of imports starts from, and those that it found.
#include <gtest/gtest.h>

#include <filesystem>

#include "fuzz/import_front_end.h"
#include "json/document.h"

namespace shardplan {
namespace {

TEST(ImportCorpus, NothingButBadInputComesOut) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/tests/fuzz/corpus/import")) {
    SCOPED_TRACE(entry.path().string());
    EXPECT_NO_THROW(run_import(read_text_file(entry.path().string())));
    ++files;
  }
  EXPECT_GT(files, 5);
}

}  // namespace
}  // namespace shardplan
