// The page of every model of the catalogue, where it fits and where it does not, under several
// frameworks: it validates and is small.
#include <gtest/gtest.h>

#include <array>

#include "load/catalog.h"
#include "model/architectures/registry.h"
#include "questions/workers.h"
#include "render/describe.h"
#include "report/render/render.h"
#include "report_testing.h"

namespace shardplan::report {
namespace {

struct Setting {
  const char* cluster;
  const char* framework;
  bool cramped;  ///< nothing trains there
};
// Sharded over many large GPUs, and whole on GPUs that are too small for any training.
constexpr std::array kRoomy{
    Setting{"64x8xH200", R"({"name": "deepspeed", "zero_stage": 3})", false},
    Setting{"64x8xH200", R"({"name": "fsdp2"})", false},
    Setting{"64x8xH200", R"({"name": "deepspeed", "ds_config": {"zero_optimization": {"stage": 3,
        "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true},
        "train_micro_batch_size_per_gpu": 1}})",
            false},
};
constexpr std::array kCramped{
    Setting{"1x1GB", R"({"name": "single"})", true},
    Setting{"2x1GB", R"({"name": "ddp"})", true},
    Setting{"2x1GB", R"({"name": "deepspeed", "zero_stage": 2})", true},
    Setting{"4x1GB", R"({"name": "deepspeed", "zero_stage": 1})", true},
};

struct Case {
  std::string model;
  Setting setting;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  std::size_t n = 0;
  for (const CatalogModel& model : catalog_models()) {
    all.push_back({model.name, kRoomy[n % kRoomy.size()]});
    all.push_back({model.name, kCramped[n % kCramped.size()]});
    ++n;
  }
  return all;
}

struct Outcome {
  std::string page;
  Fit verdict = Fit::unknown;
};

Outcome outcome_of(const Case& c) {
  Json job{{"model", c.model},
           {"cluster", c.setting.cluster},
           {"framework", Json::parse(c.setting.framework)},
           {"workload", {{"micro_batch", 1}, {"sequence_length", 512}}},
           {"checkpointing", "full"}};
  // Images may take more tokens than that: the usual sequence has room for them.
  const std::string type = find_model(c.model)->config.at("model_type");
  if (type == "gemma4" || type == "llama4") {
    job["workload"]["images"] = 0;  // their towers are counted only
  } else if (reads_images(type)) {
    job["workload"].erase("sequence_length");
  }
  const Findings found = findings_of(job, c.model + ".json");
  return {report_html(job_report(found), Messages("en")), overall(found.estimate.verdict)};
}

TEST(CatalogueReports, AreValidAndSmall) {
  constexpr std::size_t kLargestPage = 300'000;
  const std::vector<Case> all = cases();
  ASSERT_GE(all.size(), 2 * 139U);
  std::vector<Outcome> outcomes(all.size());
  for_each_index(all.size(), 0, [&](std::size_t i) { outcomes[i] = outcome_of(all[i]); });

  std::size_t fitting = 0;
  const TemporaryFolder folder;
  std::vector<std::string> arguments{"-quiet", "-errors", "-utf8", "--gnu-emacs", "yes"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = all[i].model + " on " + all[i].setting.cluster;
    if (outcomes[i].verdict == Fit::fits) ++fitting;
    constexpr std::int64_t kSmall = 20'000'000;  // trains there
    if (all[i].setting.cramped && find_model(all[i].model)->parameters > kSmall) {
      EXPECT_EQ(outcomes[i].verdict, Fit::does_not_fit) << name;
    }
    EXPECT_LT(outcomes[i].page.size(), kLargestPage) << name;
    arguments.push_back(folder.file(name + ".html", outcomes[i].page));
  }
  EXPECT_GT(fitting, all.size() * 2 / 5);  // of half the pages
  if (std::system("command -v tidy >/dev/null") != 0) GTEST_SKIP() << "tidy is not installed";
  const Finished tidy = run_program("tidy", arguments);
  EXPECT_EQ(tidy.exit_code, 0) << tidy.err;
}

}  // namespace
}  // namespace shardplan::report
