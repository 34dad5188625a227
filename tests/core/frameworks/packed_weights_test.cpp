// Bases of few bits under frameworks that shard parameters: bytes worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lowering/lower.h"
#include "lowering/packed_weights.h"
#include "lowering/rank_model.h"
#include "parallel/sharding.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"
#include "trainers/registry.h"

namespace shardplan::packed_weights_test {
namespace {

constexpr std::int64_t kLayers = 4, kHidden = 1024, kFeedForward = 2816, kVocabulary = 4096;
constexpr std::int64_t kLinear = 4 * kHidden * kHidden + 3 * kHidden * kFeedForward;
constexpr std::int64_t kRank = 16;
constexpr std::int64_t kAdapters = kLayers * 2 * 2 * kRank * kHidden;  // of q_proj and v_proj

Plan plan_over(FrameworkKind kind, std::int64_t ranks, Quantization base) {
  Plan plan = plan_of(kind, kind == FrameworkKind::deepspeed ? "bf16-master" : "bf16-pure", ranks);
  plan.workload.lora = Lora{kRank, {"q_proj", "v_proj"}, base, {}};
  plan.workload.micro_batch = 1;
  plan.workload.sequence_length = 256;
  plan.checkpointing = Checkpointing::full;
  plan.framework.deepspeed.zero.stage = 3;
  return plan;
}

Model llama(const Plan& plan, bool tied = false) {
  return model_of(std::string(R"({"model_type": "llama", "hidden_size": 1024,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    "intermediate_size": 2816, "vocab_size": 4096, "tie_word_embeddings": )") +
                      (tied ? "true}" : "false}"),
                  build_options(plan));
}

Program program_for(const Plan& plan, bool tied = false) {
  const Model model = llama(plan, tied);
  const RankModel share(model, plan);
  return lower(share.model(), plan, share.run(), 0);
}

std::int64_t resident(const Program& program, Category category) {
  std::int64_t sum = 0;
  for (const Event& e : program.resident)
    if (e.category == category) sum += e.bytes * e.count;
  return sum;
}

/// Bytes of all collectives called so.
std::int64_t sent(const Program& program, std::string_view what) {
  std::int64_t sum = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::collective && e.what == what) sum += e.bytes * times;
  });
  return sum;
}

std::int64_t peak(const Program& program, Phase phase) {
  return simulate_memory(program).phases[static_cast<std::size_t>(phase)].peak;
}

TEST(PackedWeights, AreOneColumnInTheTypeOfTheirStorage) {
  const Plan plan = plan_over(FrameworkKind::fsdp2, 2, Quantization::nf4_double);
  const Model model = llama(plan);
  const PackedWeights bf16(model, DType::bf16), fp32(model, DType::f32);
  std::int64_t wide = 0;
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    const Parameter& p = model.parameters[i];
    if (!p.quantized()) continue;
    ++wide;
    EXPECT_EQ(bf16.model().parameters[i].numel * 4, p.numel);
    EXPECT_EQ(fp32.model().parameters[i].numel * 8, p.numel);
    EXPECT_THAT(bf16.model().parameters[i].shape, testing::ElementsAre(p.numel / 4, 1));
  }
  EXPECT_EQ(wide, 7);
  const Model plain = llama(plan_over(FrameworkKind::fsdp2, 2, Quantization::none));
  EXPECT_EQ(&PackedWeights(plain, DType::bf16).model(), &plain);
}

/// Half of the packed bits, the embeddings and the norms; of the scales a byte for 64 elements and
/// four for 256 of those, whole; adapters in fp32.
TEST(PackedWeights, AreDividedAndTheirScalesAreNot) {
  const Program program = program_for(plan_over(FrameworkKind::fsdp2, 2, Quantization::nf4_double));
  const std::int64_t packed = kLayers * kLinear / 2;
  const std::int64_t scales = kLayers * kLinear / 64, nested = kLayers * kLinear / 64 / 256 * 4;
  const std::int64_t others = 2 * (2 * kVocabulary * kHidden + (2 * kLayers + 1) * kHidden);
  EXPECT_NEAR(static_cast<double>(resident(program, Category::parameters)),
              static_cast<double>(packed / 2 + scales + nested + others / 2 + 4 * kAdapters / 2),
              kLayers * 7 * 512);  // blocks of the scales of scales
  EXPECT_EQ(resident(program, Category::optimizer_states), 2 * 4 * kAdapters / 2);
}

/// Each block is gathered in each pass, in packed form; so is the root.
TEST(PackedWeights, TravelPacked) {
  const Plan plan = plan_over(FrameworkKind::fsdp2, 2, Quantization::nf4);
  const std::int64_t gathered = sent(program_for(plan), "parameter all-gather");
  const std::int64_t block = kLinear / 2 + 2 * (2 * kHidden) + 2 * kAdapters / kLayers;
  const std::int64_t root = 2 * (2 * kVocabulary * kHidden + kHidden);
  EXPECT_EQ(gathered, 2 * kLayers * block + 2 * root);
}

TEST(Fsdp2Lora, ReducesWhatTrainsAlone) {
  for (const Quantization base : {Quantization::none, Quantization::nf4}) {
    const Program program = program_for(plan_over(FrameworkKind::fsdp2, 2, base));
    EXPECT_EQ(sent(program, "gradient reduce-scatter"), 2 * kAdapters);
  }
}

/// accelerate's units: without the embeddings in the backward pass of the blocks.
TEST(Fsdp2Units, OfAcceleratePutEmbeddingsAndHeadApart) {
  Plan plan = plan_over(FrameworkKind::fsdp2, 2, Quantization::nf4);
  const std::int64_t embeddings = 2 * kVocabulary * kHidden;
  const auto backward = [&](bool tied) { return peak(program_for(plan, tied), Phase::backward); };
  const std::int64_t root = backward(false), tied_root = backward(true);
  plan.workload.lora->prepare_kbit = false;
  for (const TrainerDescription* const trainer : trainers())
    if (trainer->name == "hf_trainer") plan.trainer = trainer;
  EXPECT_LE(backward(false), root - embeddings);
  EXPECT_NEAR(static_cast<double>(backward(true)), static_cast<double>(tied_root), embeddings);
}

/// The nodes of bitsandbytes' products keep what was gathered, unless the graph is made block by
/// block (DeepSpeed's own checkpoint function).
TEST(Zero3, KeepsPackedWeightsWhole) {
  Plan plan = plan_over(FrameworkKind::deepspeed, 2, Quantization::nf4);
  ZeroOptions& zero = plan.framework.deepspeed.zero;  // nothing else stays gathered
  zero.max_reuse_distance = zero.max_live_parameters = zero.prefetch_bucket_size = 0;
  const std::int64_t held = peak(program_for(plan), Phase::backward);
  plan.framework.deepspeed.activation_checkpointing.called = true;
  const std::int64_t released = peak(program_for(plan), Phase::backward);
  const std::int64_t packed = kLayers * kLinear / 2;
  EXPECT_GT(held - released, packed / 2);
  EXPECT_LE(held - released, packed);
}

TEST(Zero3, EndsWithWhatItBeganWith) {
  const Program program = program_for(plan_over(FrameworkKind::deepspeed, 2, Quantization::nf4));
  const MemoryProfile profile = simulate_memory(program);
  EXPECT_EQ(profile.phases[static_cast<std::size_t>(Phase::step)].end,
            total_bytes(program.resident));
}

TEST(Zero3, RefusesToQuantizePackedBits) {
  Plan plan = plan_over(FrameworkKind::deepspeed, 2, Quantization::nf4);
  EXPECT_FALSE(sharding_problem(llama(plan), plan).has_value());
  plan.framework.deepspeed.zero.quantized_weights = true;
  ASSERT_TRUE(sharding_problem(llama(plan), plan).has_value());
  EXPECT_THAT(sharding_problem(llama(plan), plan)->message.text, testing::HasSubstr("packed bits"));
}

}  // namespace
}  // namespace shardplan::packed_weights_test
