#include "data/batches.h"

#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "engine/pretrained.h"
#include "json/document.h"
#include "model/pretrained_rows.h"
#include "model/safetensors.h"
#include "support/subprocess.h"
#include "validator/engine_testing.h"

namespace shardplan::validator {
namespace {

using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    return folder_.file(name, bytes);
  }
  template <typename F>
  static std::string message(F&& f) {
    try {
      f();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  TemporaryFolder folder_;
};

TEST_F(Files, of_text_are_tokens_a_byte) {
  const Tokens tokens = load_tokens(write("a.txt", "abc"), 256, 2);
  EXPECT_EQ(*tokens, (std::vector<std::int32_t>{'a', 'b', 'c'}));
}

TEST_F(Files, of_16_bit_tokens_are_read_as_they_are) {
  const std::string bytes("\x01\x00\xff\x01\x02\x00", 6);
  EXPECT_EQ(*load_tokens(write("a.bin", bytes), 600, 2), (std::vector<std::int32_t>{1, 511, 2}));
  EXPECT_THAT(message([&] { load_tokens(write("b.bin", bytes), 500, 2); }),
              HasSubstr("token 511 at position 1; expected tokens below the vocabulary's 500"));
  EXPECT_THAT(message([&] { load_tokens(write("c.bin", bytes), 600, 3); }),
              HasSubstr("3 tokens are too few; expected at least 4"));
  EXPECT_THAT(message([&] { load_tokens(write("d.bin", "abc"), 600, 1); }),
              HasSubstr("no whole number"));
  EXPECT_THAT(message([&] { load_tokens(folder_.path("none.bin"), 600, 1); }),
              HasSubstr("cannot be read"));
}

TEST(Samples, are_shared_from_both_ends_of_each_sequence) {
  const Tokens tokens = load_tokens("", 256, 16);
  const Batch all = token_batches(tokens, {.micro_batch = 2, .sequence = 16})->next(1, 0);
  const auto rows = [&](int rank) {
    const Division division{.micro_batch = 2, .sequence = 16, .share = {rank, 2}};
    return token_batches(tokens, division)->next(1, 0);
  };
  // Of each sequence rows 0 to 3 and 12 to 15, or 4 to 11; targets are those of the whole one.
  const auto expect_runs = [](const std::vector<std::int32_t>& part,
                              const std::vector<std::int32_t>& whole, std::size_t first,
                              std::size_t second) {
    ASSERT_EQ(part.size(), 16U);
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t row = i % 8, sequence = i / 8 * 16;
      EXPECT_EQ(part[i], whole[sequence + (row < 4 ? first + row : second + row - 4)]) << i;
    }
  };
  expect_runs(rows(0).tokens, all.tokens, 0, 12);
  expect_runs(rows(0).targets, all.targets, 0, 12);
  expect_runs(rows(1).tokens, all.tokens, 4, 8);
  expect_runs(rows(1).targets, all.targets, 4, 8);
}

TEST(Samples, are_the_same_however_a_run_is_divided) {
  const Tokens tokens = load_tokens("", 256, 16);
  const auto one = token_batches(tokens, {.micro_batch = 4, .sequence = 16});
  const Batch all = one->next(3, 0);
  std::vector<std::int32_t> divided;
  for (std::int64_t micro = 0; micro < 2; ++micro)
    for (int rank = 0; rank < 2; ++rank) {
      const auto part = token_batches(
          tokens, {.micro_batch = 1, .sequence = 16, .accumulation = 2, .rank = rank, .world = 2});
      const Batch batch = part->next(3, micro);
      divided.insert(divided.end(), batch.tokens.begin(), batch.tokens.end());
    }
  EXPECT_EQ(all.tokens, divided);
  EXPECT_EQ(all.targets[0], all.tokens[1]);
}

/// A safetensors file of fp32 tensors whose element i is base + i / 64.
std::string stored(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors) {
  Json header = Json::object();
  std::string data;
  float base = 0;
  for (const auto& [name, shape] : tensors) {
    std::int64_t numel = 1;
    for (const std::int64_t d : shape) numel *= d;
    const std::size_t begin = data.size();
    for (std::int64_t i = 0; i < numel; ++i) {
      const float value = base + static_cast<float>(i) / 64;
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    base += 1;
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  return out + text + data;
}

TEST_F(Files, of_weights_fill_fused_projections_and_transpose_those_of_gpt2) {
  testing::TestRun run;
  run.options.dtype = run.options.optimizer.states = DType::f32;
  DecoderSpec spec = testing::tiny_gpt2();
  spec.layers = 1;
  const std::int64_t h = spec.hidden;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors{
      {"wte.weight", {29, h}},
      {"wpe.weight", {12, h}},
      {"h.0.attn.c_attn.weight", {h, 3 * h}},
      {"h.0.attn.c_attn.bias", {3 * h}},
      {"h.0.attn.c_proj.weight", {h, h}},
      {"h.0.attn.c_proj.bias", {h}},
      {"h.0.mlp.c_fc.weight", {h, 24}},
      {"h.0.mlp.c_fc.bias", {24}},
      {"h.0.mlp.c_proj.weight", {24, h}},
      {"h.0.mlp.c_proj.bias", {h}}};
  for (const auto* name : {"h.0.ln_1", "h.0.ln_2", "ln_f"})
    for (const auto* kind : {".weight", ".bias"})
      tensors.push_back({std::string(name) + kind, {h}});
  const std::string path = write("model.safetensors", stored(tensors));
  testing::with_trainers(spec, run, [&](Trainer& trainer, BatchSource&) {
    load_pretrained(trainer, spec, path);
    const Unit& block = trainer.network().units()[1];
    for (const ParameterSpec& p : block.parameters)
      if (p.name == "qkv.weight") {
        const float* w = trainer.weights().owned(1).as<float>() + p.offset;
        // Engine [out, in], stored [in, out]: row 1, column 2 is element 2·48 + 1 of the third.
        EXPECT_FLOAT_EQ(w[1 * h + 2], 2 + static_cast<float>(2 * 3 * h + 1) / 64);
      }
    // Rows beyond the vocabulary are zero.
    EXPECT_EQ(trainer.weights().owned(0).as<float>()[29 * h], 0);
  });
  tensors.erase(tensors.begin());
  const std::string broken = write("broken.safetensors", stored(tensors));
  EXPECT_THAT(message([&] {
                testing::with_trainers(spec, run, [&](Trainer& trainer, BatchSource&) {
                  load_pretrained(trainer, spec, broken);
                });
              }),
              HasSubstr("wte.weight: this tensor is missing"));
}

TEST_F(Files, that_are_no_safetensors_are_refused) {
  EXPECT_THAT(message([&] { Safetensors(write("a.safetensors", "abc")); }), HasSubstr("too short"));
  EXPECT_THAT(
      message([&] { Safetensors(write("b.safetensors", "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f")); }),
      HasSubstr("a header of"));
  EXPECT_THAT(message([&] { Safetensors(folder_.path("none")); }), HasSubstr("cannot be read"));
}

bool has_all(const std::string&) {
  return true;
}

/// peft 0.21: A reshapes to [experts, rank, inputs], B to [outputs, rank, experts].
TEST(PretrainedRows, of_adapters_of_experts_are_one_matrix_each_of_which_b_has_experts_last) {
  const DecoderSpec s = testing::with_experts(testing::adapted(testing::tiny_mixtral(), {}),
                                              {"gate_up_proj", "down_proj"});
  const auto rows = [&](const char* parameter) {
    return pretrained_rows(s, "blocks.1.expert_adapters", parameter, has_all).at(0);
  };
  EXPECT_EQ(rows("up.lora_A").name, "layers.1.mlp.experts.base_layer.lora_A.weight");
  EXPECT_EQ(rows("down.lora_B").name, "layers.1.mlp.experts.lora_B.weight");
  EXPECT_EQ(rows("up.lora_A").shape(16), (std::array<std::int64_t, 2>{4 * 3, 16}));
  EXPECT_TRUE(rows("up.lora_A").in_order());
  const PretrainedRows b = rows("up.lora_B");
  EXPECT_EQ(b.shape(3), (std::array<std::int64_t, 2>{24, 3 * 4}));
  // Expert 2, output 5, rank 1.
  EXPECT_EQ(b.stored_at((2 * 24 + 5) * 3 + 1, 3), 5 * 12 + 1 * 4 + 2);
  const DecoderSpec one = testing::with_experts(testing::adapted(testing::tiny_mixtral(), {}),
                                                {"experts.gate_up_proj"});
  EXPECT_EQ(pretrained_rows(one, "blocks.0.expert_adapters", "up.lora_B", has_all).at(0).name,
            "layers.0.mlp.experts.lora_B.weight");
}

TEST(PretrainedRows, of_experts_are_one_tensor_a_layer_or_one_an_expert) {
  const DecoderSpec s = testing::tiny_mixtral();
  const auto up = pretrained_rows(s, "blocks.1.experts", "up.weight", has_all);
  ASSERT_EQ(up.size(), 1U);
  EXPECT_EQ(up[0].name, "layers.1.mlp.experts.gate_up_proj");
  EXPECT_EQ(up[0].count, 4 * 24);
  EXPECT_EQ(pretrained_rows(s, "blocks.1", "router.weight", has_all)[0].name,
            "layers.1.mlp.gate.weight");

  const auto has_none = [](const std::string&) { return false; };
  const auto each = pretrained_rows(s, "blocks.1.experts", "up.weight", has_none);
  ASSERT_EQ(each.size(), 8U);
  EXPECT_EQ(each[7].name, "layers.1.block_sparse_moe.experts.3.w3.weight");
  EXPECT_EQ(each[7].first, 3 * 24 + 12);
  EXPECT_EQ(each[7].count, 12);
  EXPECT_EQ(pretrained_rows(s, "blocks.1", "router.weight", has_none)[0].name,
            "layers.1.block_sparse_moe.gate.weight");
  const auto down =
      pretrained_rows(testing::tiny_qwen3_moe(), "blocks.0.experts", "down.weight", has_none);
  ASSERT_EQ(down.size(), 8U);
  EXPECT_EQ(down[2].name, "layers.0.mlp.experts.2.down_proj.weight");
  EXPECT_EQ(down[2].first, 32);
}

TEST(PretrainedRows, of_a_llama_split_fused_projections) {
  const DecoderSpec s = testing::tiny_llama();
  const auto qkv = pretrained_rows(s, "blocks.1", "qkv.weight", has_all);
  ASSERT_EQ(qkv.size(), 3U);
  EXPECT_EQ(qkv[1].name, "layers.1.self_attn.k_proj.weight");
  EXPECT_EQ(qkv[1].first, 16);
  EXPECT_EQ(qkv[1].count, 8);
  EXPECT_EQ(pretrained_rows(s, "blocks.0", "up.weight", has_all)[1].name,
            "layers.0.mlp.up_proj.weight");
  EXPECT_EQ(pretrained_rows(s, "head", "norm.weight", has_all)[0].name, "norm.weight");
}

}  // namespace
}  // namespace shardplan::validator
