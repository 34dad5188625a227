// Every file that fuzzing found worth keeping goes through its front end: bad input may only be
// reported as such.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fuzz/front_ends.h"
#include "support/subprocess.h"

namespace shardplan {
namespace {

struct FrontEnd {
  const char* name;
  void (*run)(std::string_view);
};

void PrintTo(const FrontEnd& front_end, std::ostream* out) {
  *out << front_end.name;
}

class FuzzCorpus : public ::testing::TestWithParam<FrontEnd> {};

TEST_P(FuzzCorpus, RaisesNothingButInputErrors) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::string(SHARDPLAN_SOURCE_DIR "/tests/fuzz/corpus/") + GetParam().name))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  EXPECT_GT(paths.size(), 10U);
  for (const std::string& path : paths) {
    const std::string text = text_of(path);
    EXPECT_NO_THROW(GetParam().run(text)) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(FrontEnds, FuzzCorpus,
                         ::testing::Values(FrontEnd{"job", run_job},
                                           FrontEnd{"model_config", run_model_config},
                                           FrontEnd{"ds_config", run_ds_config},
                                           FrontEnd{"cluster", run_cluster}),
                         [](const auto& front_end) { return std::string(front_end.param.name); });

}  // namespace
}  // namespace shardplan
