#include "load/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/diagnostic.h"
#include "model/architectures/plain.h"
#include "support/error_of.h"

#include <nlohmann/json.hpp>

namespace shardplan::model_loading_test {
namespace {

using ::testing::HasSubstr;

const ModelContext kContext{.file = "job.json", .key = "model", .directory = ""};

Model load(const std::string& json) {
  return load_model(parse_json(json, "job.json"), kContext, {});
}

std::string error_of(const std::string& json) {
  return error_text([&] { load(json); });
}

TEST(LoadModel, ReadsCatalogueNamesConfigurationsAndSizes) {
  EXPECT_EQ(load(R"("llama-2-7b")").parameter_count(), 6738415616);
  EXPECT_EQ(load(R"("llama-2-7b")").facts.name, "llama-2-7b");
  EXPECT_EQ(load(R"({"model_type": "gpt2"})").parameter_count(), 124439808);
  const Model generic = load(R"("7B")");
  EXPECT_NEAR(static_cast<double>(generic.parameter_count()), 7e9, 0.02 * 7e9);
  EXPECT_GE(generic.facts.assumed.size(), 4U);
}

TEST(LoadModel, ReadsAFileOrTheFolderOfOneBesideTheJob) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "model_loading_test" / "tiny";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100})";
  const ModelContext context{
      .file = "job.json", .key = "model", .directory = folder.parent_path().string()};
  const auto count = [&](const std::string& path) {
    return load_named_model(path, context, {}).parameter_count();
  };
  EXPECT_EQ(count("tiny"), count("tiny/config.json"));
  EXPECT_EQ(count((folder / "config.json").string()), count("tiny"));
}

TEST(LoadModel, AnUnknownNameIsRefusedWithTheNearestOne) {
  EXPECT_THAT(error_of(R"("lama-2-7b")"), HasSubstr("llama-2-7b"));
  EXPECT_THAT(error_of(R"("lama-2-7b")"), HasSubstr("job.json: model: 'lama-2-7b'"));
  EXPECT_THAT(error_of(R"("")"), HasSubstr("no model of the catalogue"));
  EXPECT_THAT(error_of("7"), HasSubstr("expected a catalogue name"));
  EXPECT_THAT(error_of(R"({"hidden_size": 8})"), HasSubstr("model_type"));
}

TEST(LoadModel, AListOfTensorsHasParametersAndNoGraph) {
  const Model m = load(R"({"tensors": [["a.weight", [10, 20]], ["a.bias", [10]], ["scale", []]]})");
  EXPECT_EQ(m.parameter_count(), 211);
  EXPECT_EQ(m.tensor_count(), 3);
  EXPECT_EQ(m.modules.size(), 2U);
  EXPECT_TRUE(m.segments.empty());
  EXPECT_FALSE(m.facts.assumed.empty());
}

TEST(LoadModel, BadTensorListsNameTheTensor) {
  EXPECT_THAT(error_of(R"({"tensors": []})"),
              HasSubstr("model.tensors: the list of tensors is empty"));
  EXPECT_THAT(error_of(R"({"tensors": [["a", [1]], ["a", [2]]]})"),
              HasSubstr("model.tensors[1]: 'a' appears twice"));
  EXPECT_THAT(error_of(R"({"tensors": [["a", [3, 0]]]})"), HasSubstr("dimension 0 of 'a'"));
  EXPECT_THAT(error_of(R"({"tensors": [["a", [-3]]]})"), HasSubstr("dimension -3"));
  EXPECT_THAT(error_of(R"({"tensors": [["a", [2.5]]]})"), HasSubstr("model.tensors[0][1][0]"));
  EXPECT_THAT(error_of(R"({"tensors": [["a", [18446744073709551615]]]})"),
              HasSubstr("a positive integer"));
  EXPECT_THAT(error_of(R"({"tensors": [["a", [2000000000, 2000000000]]]})"),
              HasSubstr("too large"));
  EXPECT_THAT(error_of(R"({"tensors": [["a"]]})"), HasSubstr("[name, [dims]]"));
  EXPECT_THAT(error_of(R"({"tensors": [["a", [1]]], "hidden_size": 3})"),
              HasSubstr("model.hidden_size"));
}

TEST(LoadModel, APerceptronIsLinearLayersWithReluBetween) {
  const Model m = load(R"({"mlp": [784, 128, 10]})");
  EXPECT_EQ(m.parameter_count(), 101770);
  ASSERT_EQ(m.segments.size(), 1U);
  std::vector<OpKind> kinds;
  for (const Op& op : m.segments[0].graph.ops()) kinds.push_back(op.kind);
  EXPECT_EQ(kinds, (std::vector{OpKind::linear, OpKind::relu, OpKind::linear, OpKind::log_softmax,
                                OpKind::nll_loss}));
  EXPECT_THAT(error_of(R"({"mlp": [784]})"), HasSubstr("at least two"));
  EXPECT_THAT(error_of(R"({"mlp": []})"), HasSubstr("at least two"));
  EXPECT_THAT(error_of(R"({"mlp": [784, 0, 10]})"), HasSubstr("model.mlp[1]"));
  EXPECT_THAT(error_of(R"({"mlp": "wide"})"), HasSubstr("a list of positive integers"));
  const Json endless{{"mlp", std::vector<int>(300'000, 10)}};
  EXPECT_THAT(error_of(endless.dump()), HasSubstr("299999 layers; expected at most 4096"));
}

TEST(GenericDecoder, IsWithinTwoPercentOfTheSizeAskedFor) {
  for (const char* size :
       {"125M", "350m", "760M", "1b", "1.3B", "2.7B", "7B", "13b", "30B", "70B", "175B", "1T"}) {
    const double wanted = *parse_model_size(size);
    const auto model = generic_decoder(size, {}, "f", "k");
    ASSERT_TRUE(model) << size;
    EXPECT_NEAR(static_cast<double>(model->parameter_count()) / wanted, 1, 0.02) << size;
    EXPECT_EQ(model->facts.hidden % 128, 0);
    const double aspect =
        static_cast<double>(model->facts.hidden) / static_cast<double>(model->facts.layers);
    EXPECT_GT(aspect, 20) << size;
    EXPECT_LT(aspect, 300) << size;
  }
}

TEST(GenericDecoder, OnlySizesAreSizes) {
  for (const char* text : {"", "B", "7", "7Bx", "-7B", "7 B", "1e3B", "nanB", "0B", "llama-7B"})
    EXPECT_FALSE(generic_decoder(text, {}, "f", "k")) << text;
  EXPECT_THROW(generic_decoder("1M", {}, "f", "k"), InputError);
  EXPECT_THROW(generic_decoder("100T", {}, "f", "k"), InputError);
}

}  // namespace
}  // namespace shardplan::model_loading_test
