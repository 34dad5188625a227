// What a job says of the images of a network that reads them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/segments.h"
#include "support/error_of.h"

namespace shardplan::images_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Job load(const std::string& model, const std::string& workload) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job = Json::parse(R"({"cluster": "1xA100-80GB", "framework": "single"})");
  job["model"] = model;
  job["workload"] = Json::parse(workload);
  return load_job(job, "job.json", {&hardware, ""});
}

std::string error(const std::string& model, const std::string& workload) {
  return error_text([&] { load(model, workload); });
}

/// What is live when the forward pass has ended.
std::int64_t kept(const std::string& workload) {
  const Job job = load("qwen2-vl-2b", workload);
  const ModelRun run = run_segments(job.model, job.plan);
  std::int64_t bytes = 0;
  for (const SegmentRun& s : run.segments)
    for (const TapeEvent& e : s.forward.forward) {
      const std::int64_t repeats = s.segment->repeat;
      if (e.kind == TapeEvent::Kind::alloc) bytes += repeats * e.bytes;
      if (e.kind == TapeEvent::Kind::free) bytes -= repeats * e.bytes;
    }
  return bytes;
}

TEST(Images, TakeTheTokensThatTheProcessorMakesUnlessTheJobSaysSo) {
  const Job usual = load("qwen2-vl-2b", "{}");
  EXPECT_EQ(usual.model.facts.image.tokens, 1280);
  EXPECT_EQ(usual.model.facts.image.patches, 4 * 1280);
  EXPECT_THAT(usual.assumed, Contains("images per sample: 1"));
  EXPECT_THAT(usual.assumed, Contains(HasSubstr("frozen: nothing")));
  EXPECT_EQ(load("qwen2-vl-2b", R"({"image_tokens": 256})").model.facts.image.tokens, 256);
  const Job none = load("qwen2-vl-2b", R"({"images": 0})");
  EXPECT_EQ(none.model.facts.image.tokens, 0);
  EXPECT_EQ(none.model.parameter_count(), usual.model.parameter_count());
}

TEST(Images, ComeInWholePiecesWhereTheTowerSeesPieces) {
  EXPECT_EQ(load("internvl3-1b", "{}").model.facts.image.tokens, 13 * 256);
  const Job tile = load("internvl3-1b", R"({"image_tokens": 512})");
  EXPECT_EQ(tile.model.facts.image.pieces, 2);
  EXPECT_THAT(error("internvl3-1b", R"({"image_tokens": 300})"), HasSubstr("a multiple of 256"));
  EXPECT_EQ(load("mistral-small-3.1-24b", "{}").model.facts.image.tokens, 55 * 55);
}

TEST(Images, LeaveRoomForTextInTheUsualSequence) {
  EXPECT_EQ(load("llava-1.5-7b", "{}").plan.workload.sequence_length, 2048);
  EXPECT_EQ(load("qwen2-vl-2b", R"({"image_tokens": 4000})").plan.workload.sequence_length, 5120);
  EXPECT_THAT(
      error("qwen2-vl-2b", R"({"images": 2, "image_tokens": 600, "sequence_length": 1024})"),
      HasSubstr("1024 tokens have no room for 2 images of 600 tokens each"));
}

TEST(Images, OfOneSizeHaveTheirTokensFixed) {
  EXPECT_EQ(load("llava-1.5-7b", R"({"image_tokens": 576})").model.facts.image.tokens, 576);
  EXPECT_THAT(error("llava-1.5-7b", R"({"image_tokens": 500})"),
              HasSubstr("each image of this network is 576 tokens"));
}

TEST(Images, AreRefusedWhereTheNetworkReadsNone) {
  for (const char* field : {R"({"images": 1})", R"({"image_tokens": 9})", R"({"frozen": "tower"})"})
    EXPECT_THAT(error("gpt2", field), HasSubstr("a network of type 'gpt2' reads no images"));
}

/// Every token is looked up in the vocabularies of the towers too, but rows of them come from none.
TEST(Images, AreNoneWhereWhatTheTowerKeepsIsNotDescribed) {
  const Job usual = load("gemma-3n-e2b", "{}");
  EXPECT_EQ(usual.plan.workload.images.per_sample, 0);
  EXPECT_THAT(usual.assumed, Contains(HasSubstr("images per sample: 0, the text alone")));
  for (const char* field : {R"({"images": 1})", R"({"image_tokens": 256})"})
    EXPECT_THAT(error("gemma-3n-e2b", field), HasSubstr("keeps of images is not described"))
        << field;
  for (const Parameter& p : load("gemma-3n-e2b", R"({"images": 0})").model.parameters) {
    const bool read = p.name.find("_tower.") == std::string::npos &&
                      p.name.find(".soft_embedding_norm") == std::string::npos;
    EXPECT_EQ(p.trainable, read) << p.name;
  }
}

TEST(Images, LeaveNothingInAFrozenTower) {
  const std::string at = R"(, "image_tokens": 1024, "sequence_length": 2048, "micro_batch": 1})";
  const std::int64_t all = kept(R"({"frozen": "nothing")" + at);
  const std::int64_t projector = kept(R"({"frozen": "tower")" + at);
  const std::int64_t text = kept(R"({"frozen": "tower_and_projector")" + at);
  EXPECT_GT(all, projector + (std::int64_t{1} << 30));
  EXPECT_GT(projector, text);
}

TEST(Images, OfAFrozenTowerTrainNoParameterOfIt) {
  const Job job = load("qwen2-vl-2b", R"({"frozen": "tower", "method": "lora",
                                         "lora": {"targets": ["all-linear"]}})");
  for (const Parameter& p : job.model.parameters) {
    const bool tower = p.name.starts_with("model.visual.blocks");
    EXPECT_FALSE(tower && (p.adapter || p.trainable)) << p.name;
  }
}

TEST(Images, AreNotDividedNorCompiled) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Json job = Json::parse(R"({"model": "qwen2-vl-2b", "cluster": "2xA100-80GB",
      "framework": {"name": "deepspeed", "zero_stage": 2}, "parallel": {"sequence": 2}})");
  EXPECT_THAT(error_text([&] {
                load_job(job, "job.json", {&hardware, ""});
              }),
              HasSubstr("reads images cannot be estimated divided"));
  Json compiled = job;
  compiled.erase("parallel");
  compiled["framework"] = "fsdp2";
  compiled["compile"] = {{"scope", "block"}};
  EXPECT_THAT(error_text([&] {
                load_job(compiled, "job.json", {&hardware, ""});
              }),
              HasSubstr("compiled networks that read images"));
}

}  // namespace
}  // namespace shardplan::images_test
