// Networks that read the samples of sounds: how long they are, what a job says of them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/segments.h"
#include "support/error_of.h"

namespace shardplan::sounds_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Job load(const std::string& workload, const std::string& more = "{}") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job = Json::parse(R"({"cluster": "1xA100-80GB", "framework": "single",
                             "model": "wav2vec2-base-960h"})");
  job["workload"] = Json::parse(workload);
  job.update(Json::parse(more));
  return load_job(job, "job.json", {&hardware, ""});
}

const SegmentRun& segment(const ModelRun& run, std::string_view name) {
  return *std::find_if(run.segments.begin(), run.segments.end(),
                       [&](const SegmentRun& s) { return s.segment->name == name; });
}

/// 16,079 samples, 1.005 seconds, leave 49 frames, one more leaves 50 (transformers,
/// _get_feat_extract_output_lengths).
TEST(Sounds, AreOfTheMostSamplesThatMakeTheirFrames) {
  const Job job = load("{}");
  const std::int64_t kernels[] = {10, 3, 3, 3, 3, 2, 2}, strides[] = {5, 2, 2, 2, 2, 2, 2};
  for (const std::int64_t frames : {1, 49, 1500}) {
    const Sizes sizes{.batch = 3, .sequence = frames};
    std::int64_t samples = elements(job.model.facts.brings, sizes) / 3;
    std::int64_t more = samples + 1;
    EXPECT_EQ(samples, 320 * frames + 399);
    for (std::size_t i = 0; i < 7; ++i) {
      const Graph& graph = job.model.segments[i].graph;
      samples = (samples - kernels[i]) / strides[i] + 1;
      more = (more - kernels[i]) / strides[i] + 1;
      EXPECT_EQ(elements(graph.value(graph.output()).extent, sizes), 3 * 512 * samples) << i;
    }
    EXPECT_EQ(samples, frames);
    EXPECT_EQ(more, frames + 1);
  }
}

TEST(Sounds, AreThirtySecondsUnlessTheJobSaysSo) {
  const Job job = load("{}");
  EXPECT_EQ(job.plan.workload.sequence_length, 1500);
  EXPECT_EQ(job.plan.workload.target_length, 1500);
  EXPECT_THAT(job.assumed, Contains("sequence length: 1500"));
  EXPECT_THAT(job.assumed, Contains(HasSubstr("target length: 1500 labels")));
  EXPECT_THAT(job.assumed, Contains(HasSubstr("frames are of 320 · n + 399 samples")));
  EXPECT_THAT(job.assumed, Contains("frozen: nothing, the feature encoder trains"));
  EXPECT_EQ(load(R"({"target_length": 80})").plan.workload.target_length, 80);
}

TEST(Sounds, KeepNothingOfAFrozenFeatureEncoder) {
  const Job all = load(R"({"frozen": "nothing"})"), frozen = load(R"({"frozen": "tower"})");
  EXPECT_EQ(all.model.trainable_count() - frozen.model.trainable_count(), 4'200'448);
  for (const char* how : {"none", "full"}) {
    const std::string more = std::string(R"({"checkpointing": ")") + how + "\"}";
    const Job job = load(R"({"frozen": "tower", "micro_batch": 4})", more);
    const ModelRun run = run_segments(job.model, job.plan);
    for (int i = 0; i < 7; ++i) {
      const SegmentRun& s = segment(run, "feature encoder " + std::to_string(i));
      EXPECT_FALSE(s.forward.output_needs_grad) << i;
      EXPECT_TRUE(s.backward.backward.empty()) << i;
    }
    EXPECT_TRUE(segment(run, "embedding").forward.output_needs_grad);
  }
}

/// The class tells the samples to need a gradient.
TEST(Sounds, KeepTheConvolutionsOfFrozenWeightsToo) {
  const std::string lora = R"("method": "lora", "lora": {"rank": 8, "targets": ["q_proj"]})";
  const Job job = load("{" + lora + "}", R"({"checkpointing": "none"})");
  const ModelRun run = run_segments(job.model, job.plan);
  EXPECT_TRUE(segment(run, "feature encoder 0").forward.output_needs_grad);
  const Job frozen = load(R"({"frozen": "tower", )" + lora + "}", R"({"checkpointing": "none"})");
  const ModelRun less = run_segments(frozen.model, frozen.plan);
  EXPECT_FALSE(segment(less, "feature encoder 0").forward.output_needs_grad);
}

TEST(Sounds, AreCheckpointedConvolutionByConvolution) {
  const Job job = load("{}", R"({"checkpointing": "full"})");
  std::int64_t blocks = 0;
  for (const Segment& s : job.model.segments) blocks += s.checkpointable ? s.repeat : 0;
  EXPECT_EQ(blocks, 7 + 12);
}

TEST(Sounds, HaveNoImagesAndNoProjectorToFreeze) {
  EXPECT_THAT(error_text([] { load(R"({"images": 1})"); }), HasSubstr("workload.images"));
  EXPECT_THAT(error_text([] { load(R"({"frozen": "tower_and_projector"})"); }),
              HasSubstr("feature encoder alone"));
  EXPECT_THAT(error_text([] { load("{}", R"({"compile": true})"); }), HasSubstr("compile"));
  EXPECT_THAT(error_text([] { load(R"({"kind": "inference"})"); }), HasSubstr("training alone"));
}

}  // namespace
}  // namespace shardplan::sounds_test
