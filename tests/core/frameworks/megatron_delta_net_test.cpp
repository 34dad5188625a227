// Gated delta nets under Megatron-LM, as mcore-bridge 1.6 runs Megatron Core's
// (model/modules/gated_delta_net.py). Expected values are counted by hand.
#include <gmock/gmock.h>

#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "parallel/problem.h"
#include "parallel/shard.h"
#include "simulator/memory.h"
#include "support/block_testing.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::megatron_delta_net_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kHidden = 512, kFfn = 1024, kBatch = 2, kSequence = 256;
constexpr std::int64_t kKeyHeads = 4, kValueHeads = 8, kKeyDim = 64, kValueDim = 64;
constexpr std::int64_t kKeys = kKeyHeads * kKeyDim, kValues = kValueHeads * kValueDim;
constexpr std::int64_t kMixed = 2 * kKeys + kValues;
constexpr std::int64_t kTokens = kBatch * kSequence;

Plan megatron(std::int64_t gpus, std::int64_t tensor) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", gpus);
  plan.workload.micro_batch = kBatch;
  plan.workload.sequence_length = kSequence;
  plan.workload.gradient_accumulation = 2;
  plan.parallel.tensor = tensor;
  plan.parallel.sequence_parallel = tensor > 1;
  return plan;
}

Model network(const Plan& plan, std::string_view type = "qwen3_5_text") {
  return model_of(Json{{"model_type", type},
                       {"hidden_size", kHidden},
                       {"intermediate_size", kFfn},
                       {"num_hidden_layers", 8},
                       {"num_attention_heads", 8},
                       {"num_key_value_heads", 2},
                       {"head_dim", 64},
                       {"vocab_size", 1024},
                       {"linear_num_key_heads", kKeyHeads},
                       {"linear_num_value_heads", kValueHeads},
                       {"linear_key_head_dim", kKeyDim},
                       {"linear_value_head_dim", kValueDim},
                       {"num_experts", 8},
                       {"num_experts_per_tok", 2},
                       {"moe_intermediate_size", 128},
                       {"shared_expert_intermediate_size", 128}}
                      .dump(),
                  build_options(plan));
}

const Parameter& tensor(const Model& model, std::string_view end) {
  for (const Parameter& p : model.parameters)
    if (p.name.ends_with(end)) return p;
  ADD_FAILURE() << end;
  return model.parameters.front();
}

TEST(MegatronDeltaNet, DividesHeadsOverTensorParallelRanks) {
  const Plan plan = megatron(4, 4);
  const Model part = shard(network(plan), plan);
  const auto elements = [&](std::string_view end) { return tensor(part, end).numel; };
  EXPECT_EQ(elements("in_proj_qkv.weight"), kHidden * kMixed / 4);
  EXPECT_EQ(elements("in_proj_z.weight"), kHidden * kValues / 4);
  EXPECT_EQ(elements("in_proj_b.weight"), kHidden * kValueHeads / 4);
  EXPECT_EQ(elements("in_proj_a.weight"), kHidden * kValueHeads / 4);
  EXPECT_EQ(elements("conv1d.weight"), kMixed * 4 / 4);  // a kernel of 4
  EXPECT_EQ(elements("A_log"), kValueHeads / 4);
  EXPECT_EQ(elements("dt_bias"), kValueHeads / 4);
  EXPECT_EQ(elements("linear_attn.norm.weight"), kValueDim);
  EXPECT_EQ(elements("out_proj.weight"), kHidden * kValues / 4);
}

TEST(MegatronDeltaNet, DividesTheGateBesideTheQueries) {
  const Plan plan = megatron(2, 2);
  const Model part = shard(network(plan), plan);
  EXPECT_EQ(tensor(part, "q_proj.weight").numel, kHidden * 2 * 8 * 64 / 2);
  EXPECT_EQ(tensor(part, "o_proj.weight").numel, kHidden * 8 * 64 / 2);
}

/// What a layer keeps of each token, in bytes; `ranks` divide heads and, outside of the delta net,
/// tokens.
std::int64_t kept(std::int64_t ranks) {
  constexpr std::int64_t kBf16 = 2, kF32 = 4;
  const std::int64_t value_head_keys = kValueHeads * kKeyDim;
  const std::int64_t heads = kBf16 * (kMixed       // the convolution's input
                                      + 2 * kKeys  // the norms' of queries and keys
                                      + 2 * value_head_keys + kValues  // the rule's own inputs
                                      + 64 * kValueHeads               // its systems
                                      + 2 * kValueHeads                // beta, and the rule's
                                      + 4 * kValues)      // result, its norm, the gate, both
                             + kF32 * (2 * kKeyHeads      // statistics of the norms
                                       + 3 * kValueHeads  // of the rule
                                       + 2 * kValueHeads  // softplus: what it reads and makes
                                       + kValueHeads);    // statistics of the gated norm
  // The norm's result and statistics are of all tokens.
  const std::int64_t whole = kBf16 * kHidden + kF32;
  // The residual, the second norm and its statistics, the result.
  const std::int64_t tokens = 3 * kBf16 * kHidden + kF32;
  const std::int64_t mlp = 3 * kBf16 * kFfn;
  return kTokens * (heads / ranks + whole + tokens / ranks + mlp / ranks);
}

TEST(MegatronDeltaNet, KeepsWhatItsKernelsRead) {
  const Plan plan = megatron(1, 1);
  const Model model = network(plan);
  // exp(A_log) and its negative are a block of the allocator each.
  EXPECT_EQ(kept_by_first_block(model, plan), kept(1) + 2 * 512);
}

TEST(MegatronDeltaNet, GathersItsTokensUnderSequenceParallelism) {
  const Plan plan = megatron(2, 2);
  const Model part = shard(network(plan), plan);
  // What the norm reads is gathered too, in place of the rank's own tokens.
  constexpr std::int64_t kAll = kTokens * 2 * kHidden;
  EXPECT_EQ(kept_by_first_block(part, plan), kept(2) + kAll - kAll / 2 + 2 * 512);
}

TEST(MegatronDeltaNet, LeavesTheLiveBytesAsItFoundThem) {
  for (const char* type : {"qwen3_5_text", "qwen3_next"})
    for (const auto how : {Checkpointing::none, Checkpointing::selective, Checkpointing::full})
      for (const bool adapts : {false, true})
        for (const auto& [tensor, stages] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
          Plan plan = megatron(4, tensor);
          plan.parallel.pipeline = stages;
          plan.checkpointing = how;
          if (adapts) plan.workload.lora = Lora{.rank = 8, .targets = {"all-linear"}};
          const Model model = network(plan, type);
          ASSERT_EQ(division_problem(model, plan), std::nullopt);
          const RankModel share(model, plan);
          for (const std::int64_t rank : {0, 3}) {
            const Played p = play(lower(share.model(), plan, share.run(), rank));
            EXPECT_EQ(p.at_end, p.profile.at_start) << type << ", tensor " << tensor;
            for (const std::int64_t least : p.least) EXPECT_GE(least, 0);
          }
        }
}

TEST(MegatronDeltaNet, SharesOneAdapterOfItsProjection) {
  Plan plan = megatron(1, 1);
  plan.workload.lora = Lora{.rank = 8, .targets = {"all-linear"}};
  const Model model = network(plan);
  std::int64_t a = 0, b = 0;
  for (const Parameter& p : model.parameters) {
    if (p.name.find("layers.{}.linear_attn.in_proj") == std::string::npos || !p.adapter) continue;
    (p.name.find("lora_A") != std::string::npos ? a : b) += p.numel;
  }
  // Two runs of layers with delta nets, in front of and behind one that attends.
  EXPECT_EQ(a, 2 * 8 * kHidden);
  EXPECT_EQ(b, 2 * 8 * (kMixed + kValues + 2 * kValueHeads));
}

TEST(MegatronDeltaNet, WidensTheUpperBoundAndSaysWhy) {
  const Plan plan = megatron(1, 1);
  const Model model = network(plan);
  EXPECT_GT(estimate(model, plan, Calibration{}).most_over, 1);
  EXPECT_THAT(model.facts.assumed, testing::Contains(HasSubstr("no run confirms it")));
}

TEST(MegatronDeltaNet, WantsWholeSequences) {
  Plan plan = megatron(2, 1);
  plan.parallel.context = 2;
  const auto problem = division_problem(network(plan), plan);
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->message.text, HasSubstr("need the whole sequence"));
}

}  // namespace
}  // namespace shardplan::megatron_delta_net_test
