// Answers as text: what every one of them must keep to, and the pieces they are made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "json/document.h"
#include "load/calibration.h"
#include "load/catalog.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/largest.h"
#include "render/catalog_text.h"
#include "render/compare_text.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/fit_text.h"
#include "render/largest_text.h"
#include "render/model_text.h"
#include "render/table.h"
#include "render/text_width.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::size_t kWidest = 110;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

void expect_tidy(const std::string& text) {
  EXPECT_THAT(text, EndsWith("\n"));
  for (const std::string& line : lines(text)) {
    EXPECT_LE(display_width(line), kWidest) << line;
    EXPECT_THAT(line, Not(EndsWith(" ")));
    EXPECT_THAT(line, Not(HasSubstr("\t")));
  }
}

const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}

Job loaded(const fs::path& file) {
  JobContext context;
  context.hardware = &hardware();
  context.directory = file.parent_path().string();
  return load_job(read_json_file(file.string()), file.string(), context);
}

Job example(const std::string& name) {
  return loaded(fs::path(SHARDPLAN_SOURCE_DIR) / "configs/jobs" / (name + ".json"));
}

TEST(Render, NamesTheRuntimeOfTheGpuAndSaysWhoseConstantsTheyAre) {
  const auto text_of = [](const char* cluster) {
    JobContext context;
    context.hardware = &hardware();
    const Json job{{"model", "gpt2"}, {"cluster", cluster}, {"framework", "ddp"}};
    const Job loaded = load_job(job, "job.json", context);
    const Calibration calibration = load_calibration();
    const Estimate e = estimate(loaded.model, loaded.plan, calibration);
    return estimate_text(e, loaded, calibration, cost_of(loaded.model, loaded.plan, e, {}));
  };
  const std::string amd = text_of("2xMI300X");
  EXPECT_THAT(amd, HasSubstr("ROCm context"));
  EXPECT_THAT(amd, HasSubstr("RCCL"));
  EXPECT_THAT(amd, HasSubstr("taken from CUDA and NCCL"));
  EXPECT_THAT(amd, Not(HasSubstr("CUDA context")));
  const std::string nvidia = text_of("2xA100");
  EXPECT_THAT(nvidia, HasSubstr("CUDA context"));
  EXPECT_THAT(nvidia, Not(HasSubstr("ROCm")));
}

TEST(Render, AnswersToEveryExampleAreTidy) {
  const fs::path folder = fs::path(SHARDPLAN_SOURCE_DIR) / "configs/jobs";
  for (const auto& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    Job job = loaded(entry.path());
    job.plan.workload.tokens = 1e12;
    const Calibration calibration = load_calibration();
    const Estimate e = estimate(job.model, job.plan, calibration);
    const Cost cost = cost_of(job.model, job.plan, e, {.price_per_gpu_hour = 2.5});
    expect_tidy(estimate_text(e, job, calibration, cost));
    expect_tidy(
        fit_text(e, job, find_fixes(job.model, job.plan, e, calibration), calibration, cost));
    expect_tidy(compare_text(job, compare_stages(job.model, job.plan, calibration)));
    expect_tidy(model_text(job.model, false));
  }
}

TEST(Render, CatalogsAreTidyAndWhole) {
  expect_tidy(models_text());
  expect_tidy(gpus_text(hardware()));
  expect_tidy(clusters_text(hardware()));
  for (const CatalogGpu& row : hardware().gpus)
    EXPECT_THAT(gpus_text(hardware()), HasSubstr(row.gpu.name));
  for (const Instance& row : hardware().instances)
    EXPECT_THAT(clusters_text(hardware()), HasSubstr(row.name));
  EXPECT_THAT(models_json(), SizeIs(catalog_models().size()));
  EXPECT_THAT(gpus_json(hardware()), SizeIs(hardware().gpus.size()));
  EXPECT_THAT(clusters_json(hardware()), SizeIs(hardware().instances.size()));
}

TEST(Render, UnverifiedFiguresAreMarked) {
  const std::string text = gpus_text(hardware());
  for (const std::string& line : lines(text)) {
    const CatalogGpu* row = find_gpu(hardware(), line.substr(0, line.find(' ')));
    if (row == nullptr) continue;
    const bool assumed = row->gpu.usable_source == Source::assumed;
    if (assumed) {
      EXPECT_THAT(line, HasSubstr("GiB?"));
    } else if (row->gpu.unverified.empty()) {
      EXPECT_THAT(line, Not(HasSubstr("?")));
    }
  }
}

TEST(Render, StatesOfZeroThreeAreSixteenBytesOverTheGpus) {
  const Job job = example("llama-2-7b-zero3");
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  EXPECT_EQ(model_states(e), 16 * 6'738'415'616 / 4);
  EXPECT_THAT(state_table(e, {}), HasSubstr("4.000 B per parameter"));
}

TEST(Render, HeadlineSaysTheVerdictFirst) {
  const Job job = example("llama-2-7b-zero3");
  const Estimate e = estimate(job.model, job.plan, load_calibration());
  EXPECT_THAT(headline(e, job), StartsWith("FITS: llama-2-7b (6.74 B parameters) on 4 × A100"));
  EXPECT_THAT(headline(e, job), HasSubstr("DeepSpeed ZeRO-3, bf16-master, AdamW"));
}

TEST(Render, LargestSaysWhenNothingFits) {
  const Job job = example("llama-2-7b-zero3");
  LargestResult none;
  none.beyond = estimate(job.model, job.plan, load_calibration());
  EXPECT_THAT(largest_text("micro_batch", none, job),
              StartsWith("Not even the smallest micro-batch fits on 4 × A100"));
  EXPECT_THAT(largest_text("gpus", none, job), StartsWith("No number of these GPUs is enough"));
}

std::string answer_to(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  const Job read = load_job(job, "job.json", {.hardware = &hardware});
  return estimate_text(estimate(read.model, read.plan, calibration), read, calibration, {});
}

Json experts_over(std::int64_t ranks) {
  return {{"schema", "shardplan.job/1"}, {"model", "qwen3-30b-a3b"},
          {"cluster", "2x8xA100-40GB"},  {"framework", {{"name", "megatron"}}},
          {"precision", "bf16-master"},  {"parallel", {{"expert", ranks}, {"tensor", 1}}},
          {"workload", {{"micro_batch", 1}, {"sequence_length", 1024}}}};
}

TEST(Render, SaysThatExpertsAreTakenToHaveEquallyManyTokens) {
  EXPECT_THAT(answer_to(experts_over(8)), HasSubstr("each GPU's get the mean of the tokens"));
  EXPECT_THAT(answer_to(experts_over(1)), Not(HasSubstr("get the mean of the tokens")));
}

/// AWS' machine of such GPUs has four ports of 100 Gb/s for eight of them.
TEST(Render, SaysWhereThePriceIsOfAMachineWithASlowerNetwork) {
  Json job = experts_over(8);
  EXPECT_THAT(answer_to(job), HasSubstr("whose network has 6.25 GB/s per GPU and not 25"));
  job["cluster"] = "2xp4d.24xlarge";
  EXPECT_THAT(answer_to(job), Not(HasSubstr("the price is that of")));
}

/// BLOOM's class has no other attention.
TEST(Render, SaysTheAttentionThatIsEstimated) {
  const std::string text = answer_to({{"schema", "shardplan.job/1"},
                                      {"model", "bloom-560m"},
                                      {"cluster", "1xA100-40GB"},
                                      {"framework", {{"name", "single"}}},
                                      {"precision", "bf16-autocast"},
                                      {"workload", {{"micro_batch", 1}, {"sequence_length", 512}}}});
  EXPECT_THAT(text, HasSubstr("eager attention"));
  EXPECT_THAT(text, Not(HasSubstr("fused attention\n")));
  EXPECT_THAT(text, Not(HasSubstr(" 0.00 ms")));
}

/// Where published runs took more than is counted, that is what the bound is wide by.
TEST(Render, BlamesNoAllocatorForABoundFromPublishedRuns) {
  const std::string text = answer_to(
      {{"schema", "shardplan.job/1"},
       {"model", "llama-3-70b"},
       {"cluster", "g5.12xlarge"},
       {"framework", {{"name", "fsdp2"}, {"cpu_offload", true}}},
       {"precision", "bf16-autocast"},
       {"checkpointing", "full"},
       {"trainer", "hf_trainer"},
       {"workload",
        {{"micro_batch", 1},
         {"sequence_length", 3072},
         {"method", "lora"},
         {"lora", {{"rank", 16}, {"targets", {"all-linear"}}, {"quantization", "nf4_double"}}}}}});
  EXPECT_THAT(text, HasSubstr("TIGHT"));
  EXPECT_THAT(text, HasSubstr("no setting of the allocator makes it sure"));
  EXPECT_THAT(text, Not(HasSubstr("takes most of that uncertainty away")));
}

TEST(Wrapped, BreaksAtSpacesAndIndentsTheRest) {
  const std::string words(60, 'a');
  EXPECT_EQ(wrapped(words + " " + words, "- ", "  "), "- " + words + "\n  " + words + "\n");
  EXPECT_EQ(wrapped("short words", "- ", "  "), "- short words\n");
  EXPECT_EQ(wrapped("", "", ""), "\n");
}

TEST(Wrapped, KeepsAWordThatIsLongerThanALine) {
  const std::string word(150, 'b');
  EXPECT_EQ(wrapped("a " + word, "", ""), "a\n" + word + "\n");
}

TEST(TextWidth, WrapsTextWithinItAndIsGoneWithItsObject) {
  const std::string words = "ten chars ten chars ten chars ten chars ten chars";
  {
    const TextWidth narrow(40);
    EXPECT_EQ(wrapped(words, "", ""), "ten chars ten chars ten chars ten chars\nten chars\n");
    const TextWidth wide(5000);  // nobody reads such lines
    EXPECT_EQ(TextWidth::current(), TextWidth::kUsual);
  }
  EXPECT_EQ(wrapped(words, "", ""), words + "\n");
}

TEST(TextTable, AlignsColumnsByWhatIsSeen) {
  TextTable table({Align::left, Align::right});
  table.add({"4 × A", "1"});
  table.add({"b", "22"});
  EXPECT_EQ(table.text(""), "4 × A   1\nb      22\n");
}

TEST(TimeText, SaysWhatToDoWhereTheHostDecides) {
  Estimate e;
  e.time.step_seconds = 1;
  e.time.idle_seconds = 0.25;
  e.time.on_usual_host = true;
  EXPECT_THAT(time_lines(e, 1), HasSubstr("the host decides this time"));
  EXPECT_THAT(time_lines(e, 1), HasSubstr("`shardplan probe`"));
  e.time.on_usual_host = false;  // measured already
  EXPECT_THAT(time_lines(e, 1), Not(HasSubstr("the host decides")));
  e.time.on_usual_host = true;
  e.time.idle_seconds = 0.24;
  EXPECT_THAT(time_lines(e, 1), Not(HasSubstr("the host decides")));
}

TEST(TimeText, SaysHowFarOffSuchStepsWere) {
  Estimate e;
  e.time.step_seconds = 1;
  e.time.kind = "ddp";
  EXPECT_THAT(time_lines(e, 1),
              HasSubstr("error of such times: not known: no ddp step was measured\n"));
  e.time.error = StepError{.kind = "ddp", .runs = 25, .mean = 0.068, .largest = -0.327};
  e.time.source = Source::calibrated;
  EXPECT_THAT(time_lines(e, 1), HasSubstr("error of such times: 7 % in the mean, 33 % at most, in 25 "
                                       "measured ddp steps\n"));
  e.time.source = Source::assumed;  // another architecture
  EXPECT_THAT(step_error_text(e.time), EndsWith("ddp steps, none of them on such a GPU"));
}

}  // namespace
}  // namespace shardplan
